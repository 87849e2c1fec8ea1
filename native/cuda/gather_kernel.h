// The collection kernels. See docs/guides/gpu.md for how they work. Needs CUDA's runtime and
// nothing else, so that kernels can be tried by themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "native/device/gather_rows.h"

namespace gear_reverb::cuda {

enum class GatherKernel {
  kLanes,  // Every warp takes tiles; neighbouring lanes load neighbouring 16 bytes.
  kBulk,   // The same, with the aligned part of a tile copied by bulk copies (compute 9.0 on).
};

// Whether the GPU with this compute capability's major number has it.
constexpr bool HasKernel(GatherKernel kernel, int major) {
  return kernel == GatherKernel::kLanes || major >= 9;
}

// As many blocks as a GPU holds at once; each takes tiles until there are none.
struct GatherBlocks {
  uint32_t lanes = 1, bulk = 1;

  // For sources in the host's memory: a megabyte and more on its way over the link, which is ten
  // times what keeps it busy, and the other multiprocessors are left to other kernels.
  GatherBlocks ForHost() const { return {lanes < 64 ? lanes : 64, bulk < 32 ? bulk : 32}; }
};

// Once per device before the first launch, with that device current.
cudaError_t PrepareGather(GatherBlocks* blocks);

// Writes all rows; `output` is a multiple of 128. The list and what it points to must stay as they
// are until the stream has come past. `held`: of the current device.
cudaError_t LaunchGather(GatherKernel kernel, const device::RowList& list, std::byte* output,
                         const GatherBlocks& held, cudaStream_t stream);

}  // namespace gear_reverb::cuda
