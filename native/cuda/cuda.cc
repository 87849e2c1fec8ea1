#include "native/cuda/cuda.h"

#include "native/cuda/check.h"
#include "native/memory/numa.h"

namespace gear_reverb::cuda {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

bool IsBuilt() { return true; }

absl::StatusOr<Versions> InstalledVersions() {
  Versions versions;
  GR_RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&versions.driver));
  GR_RETURN_IF_CUDA_ERROR(cudaRuntimeGetVersion(&versions.runtime));
  return versions;
}

absl::Status Availability() {
  GR_ASSIGN_OR_RETURN(const Versions versions, InstalledVersions());
  if (versions.driver == 0) {
    return absl::FailedPreconditionError("There is no CUDA driver on this machine.");
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    return base::FailedPrecondition("The CUDA driver is too old: it is of CUDA ",
                                    VersionText(versions.driver), ", the kernels are of CUDA ",
                                    VersionText(versions.runtime), ".");
  }
  GR_RETURN_IF_ERROR(ToStatus(error, "cudaGetDeviceCount"));
  if (count == 0) return absl::FailedPreconditionError("The CUDA driver sees no GPU.");
  for (int index = 0; index < count; ++index) {
    if (CheckCapability(index).ok()) return absl::OkStatus();
  }
  return CheckCapability(0);
}

absl::Status CheckCapability(int index) {
  int major = 0;
  GR_RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  constexpr int kLeastMajor = 8;  // What native/cmake/cuda.cmake compiles for.
  if (major >= kLeastMajor) return absl::OkStatus();
  return base::FailedPrecondition("GPU cuda:", index, " has a compute capability of ", major,
                                  "; kernels need ", kLeastMajor, ".");
}

absl::StatusOr<std::vector<GpuInfo>> Gpus() {
  GR_RETURN_IF_ERROR(Availability());
  int count = 0;
  GR_RETURN_IF_CUDA_ERROR(cudaGetDeviceCount(&count));
  std::vector<GpuInfo> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    GR_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index));
    int read_only = 0;
    GR_RETURN_IF_CUDA_ERROR(
        cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, index));
    char address[32] = {};  // Of the PCI bus.
    GR_RETURN_IF_CUDA_ERROR(cudaDeviceGetPCIBusId(address, sizeof(address), index));
    GpuInfo& gpu = gpus.emplace_back();
    gpu.index = index;
    gpu.name = properties.name;
    gpu.major = properties.major;
    gpu.minor = properties.minor;
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.memory_bytes = properties.totalGlobalMem;
    gpu.numa_node = memory::Topology().NodeOfPci(address);
    gpu.registers_read_only = read_only != 0;
  }
  return gpus;
}

}  // namespace gear_reverb::cuda
