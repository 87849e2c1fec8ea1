#include "native/cuda/cuda.h"

namespace gear_reverb::cuda {
namespace {

absl::Status NotBuilt() {
  return absl::UnimplementedError(
      "This build of gear_reverb has no CUDA kernels: there was no nvcc when it was built.");
}

}  // namespace

bool IsBuilt() { return false; }
absl::Status Availability() { return NotBuilt(); }
absl::StatusOr<std::vector<GpuInfo>> Gpus() { return NotBuilt(); }
absl::StatusOr<Versions> InstalledVersions() { return NotBuilt(); }

}  // namespace gear_reverb::cuda
