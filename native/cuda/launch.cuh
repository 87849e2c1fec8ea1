// Launches of kernels.
#pragma once

#include "native/cuda/intrinsics.cuh"

namespace gear_reverb::cuda {

// The result is the launch's own; what the kernel does wrong, a later call says.
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), uint32_t blocks, uint32_t threads,
                   size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = {blocks, 1, 1};
  config.blockDim = {threads, 1, 1};
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace gear_reverb::cuda
