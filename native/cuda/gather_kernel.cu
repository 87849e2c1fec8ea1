#include "native/cuda/gather_kernel.h"

#include "native/cuda/bulk_copy.cuh"
#include "native/cuda/gather_tiles.cuh"
#include "native/cuda/launch.cuh"

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

template <typename Kernel>
cudaError_t FindHeld(Kernel kernel, uint32_t threads, size_t shared_bytes, uint32_t* held) {
  int device = 0, multiprocessors = 0, of_each = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, static_cast<int>(threads),
                                                        shared_bytes);
  // One block at least: where none fits, the launch says so.
  *held = static_cast<uint32_t>(of_each > 0 ? of_each * multiprocessors : 1);
  return error;
}

}  // namespace

cudaError_t PrepareGather(GatherBlocks* blocks) {
  cudaError_t error = cudaFuncSetAttribute(
      GatherByBulk, cudaFuncAttributeMaxDynamicSharedMemorySize, kBulkSharedBytes);
  if (error != cudaSuccess) return error;
  error = FindHeld(GatherByLanes, kThreads, 0, &blocks->lanes);
  if (error != cudaSuccess) return error;
  return FindHeld(GatherByBulk, kBulkThreads, kBulkSharedBytes, &blocks->bulk);
}

cudaError_t LaunchGather(GatherKernel kernel, const RowList& list, std::byte* output,
                         const GatherBlocks& held, cudaStream_t stream) {
  if (list.tile_count == 0) return cudaSuccess;
  const bool bulk = kernel == GatherKernel::kBulk;
  const uint32_t threads = bulk ? kBulkThreads : kThreads;
  const uint64_t most = bulk ? held.bulk : held.lanes;
  const uint64_t wanted = (list.tile_count + threads / 32 - 1) / (threads / 32);
  const auto blocks = static_cast<uint32_t>(wanted < most ? wanted : most);
  return bulk ? Launch(GatherByBulk, blocks, threads, kBulkSharedBytes, stream, list, output)
              : Launch(GatherByLanes, blocks, threads, 0, stream, list, output);
}

}  // namespace gear_reverb::cuda
