// Whether there are kernels in this build, and GPUs to run them on. Here and in all of the layer:
// in a build without CUDA the functions are there too, and say that they cannot work.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gear_reverb::cuda {

// Whether kernels were compiled in.
bool IsBuilt();

// OK if a GPU can be used, else why not: UNIMPLEMENTED without kernels, FAILED_PRECONDITION without
// a driver, with one that is too old, or without a GPU that kernels are compiled for. Costs
// milliseconds the first time.
absl::Status Availability();
// The same of GPU number `index` alone, which there is.
absl::Status CheckCapability(int index);

struct GpuInfo {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // Compute capability.
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  int numa_node = -1;                // Of the host's memory that is near; -1: any.
  bool registers_read_only = false;  // Whether read-only host memory can be registered.
};
struct Versions {
  int driver = 0, runtime = 0;  // As CUDA counts: 1000 * major + 10 * minor.
};
// Errors of Availability.
absl::StatusOr<std::vector<GpuInfo>> Gpus();
absl::StatusOr<Versions> InstalledVersions();

}  // namespace gear_reverb::cuda
