#include "native/cuda/gather_kernel.h"

#include "native/cuda/bulk_copy.cuh"
#include "native/cuda/gather_tiles.cuh"

namespace gear_reverb::cuda {
namespace {

using device::RowList;

constexpr uint32_t kWarpsOfBlock = 8;
constexpr uint32_t kThreads = 32 * kWarpsOfBlock;
__global__ void __launch_bounds__(kThreads) GatherByLanes(const RowList list, std::byte* output) {
  const uint32_t lane = threadIdx.x % 32;
  ForTiles(list, [&](uint64_t number) {
    WriteTile(lane, FindTile(list, number, lane), output,
              [](const Tile&, int64_t, int64_t) { return false; });
  });
}

__global__ void __launch_bounds__(kBulkThreads)
    GatherByBulk(const RowList list, std::byte* output) {
  const uint32_t lane = threadIdx.x % 32;
  BulkPipeline pipeline(lane);
  ForTiles(list, [&](uint64_t number) {
    WriteTile(lane, FindTile(list, number, lane), output,
              [&](const Tile& tile, int64_t begin, int64_t end) {
                if (tile.row.kind != RowKind::kCopy ||
                    tile.row.source_bytes / tile.row.pieces < kWholeWarpFromBytes) {
                  return false;
                }
                ForSegments<32>(
                    lane, tile, begin, end, output,
                    [&](auto lanes, const std::byte* from, uint32_t bytes, std::byte* to) {
                      pipeline.CopySegment(lanes, from, bytes, to);
                    });
                return true;
              });
  });
  pipeline.Finish();
}

}  // namespace

cudaError_t PrepareGather() {
  return cudaFuncSetAttribute(GatherByBulk, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              kBulkSharedBytes);
}

cudaError_t LaunchGather(GatherKernel kernel, const RowList& list, std::byte* output,
                         int multiprocessors, cudaStream_t stream) {
  if (list.tile_count == 0) return cudaSuccess;
  const bool bulk = kernel == GatherKernel::kBulk;
  const uint32_t threads = bulk ? kBulkThreads : kThreads;
  // As many blocks as the GPU holds at once; each takes tiles until there are none.
  const uint64_t resident = uint64_t{2048} / kThreads * multiprocessors;
  const uint64_t held = bulk ? uint64_t{2} * multiprocessors : resident;
  const uint64_t wanted = (list.tile_count + threads / 32 - 1) / (threads / 32);
  const auto blocks = static_cast<uint32_t>(wanted < held ? wanted : held);
  if (bulk) {
    GatherByBulk<<<blocks, threads, kBulkSharedBytes, stream>>>(list, output);
  } else {
    GatherByLanes<<<blocks, threads, 0, stream>>>(list, output);
  }
  return cudaGetLastError();
}

}  // namespace gear_reverb::cuda
