// The first k of an order, k <= 1024, by one block.
//
// An item can be among the first k only if every node above it is among the first k of its level:
// so the block goes down from the root, keeps k nodes a level, and ranks their 32 k children in
// tiles. It reads 16 * 32 k bytes a level, wherever the items lie and however many there are; a
// tile none of whose ranks is before the k-th so far costs no sort.
#include "native/cuda/launch.cuh"
#include "native/cuda/select_kernels.h"
#include "native/cuda/select_node.cuh"

namespace gear_reverb::cuda {
namespace {

using device::DrawOutput;
using device::SelectionView;
using device::TreeView;

constexpr uint32_t kMost = device::kMaxTop;

// The first half of the places is the best so far, in order; the other half a tile.
struct Places {
  Rank rank[2 * kMost];
  uint32_t node[2 * kMost];
};

// Bitonic: 2 * kMost places, a pair for each thread and step.
__device__ __forceinline__ void Sort(Places& places) {
  for (uint32_t run = 2; run <= 2 * kMost; run *= 2) {
    for (uint32_t distance = run / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const uint32_t a = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
      const uint32_t b = a + distance;
      const Rank first = places.rank[a], second = places.rank[b];
      const bool ascending = (a & run) == 0;
      if (ascending ? second.Before(first) : first.Before(second)) {
        places.rank[a] = second;
        places.rank[b] = first;
        const uint32_t node = places.node[a];
        places.node[a] = places.node[b];
        places.node[b] = node;
      }
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kMost)
    Top(const __grid_constant__ SelectionView view, uint32_t k, const DrawOutput output) {
  __shared__ Places places;
  __shared__ uint32_t frontier[kMost];
  const TreeView<Rank>& tree = view.ranks;
  const uint32_t thread = threadIdx.x;
  uint32_t nodes = 1;
  if (thread == 0) frontier[0] = 0;
  for (int level = tree.top - 1; level >= 0; --level) {
    const uint32_t children = nodes * kFanout;
    places.rank[thread] = Rank();
    __syncthreads();
    for (uint32_t tile = 0; tile < children; tile += kMost) {
      Rank rank;
      uint32_t node = 0;
      if (tile + thread < children) {
        node = frontier[(tile + thread) / kFanout] * kFanout + thread % kFanout;
        rank = LoadRank(tree.level[level], node);
      }
      if (__syncthreads_or(rank.Before(places.rank[k - 1])) == 0) continue;
      places.rank[kMost + thread] = rank;
      places.node[kMost + thread] = node;
      Sort(places);
    }
    nodes = __syncthreads_count(thread < k && places.rank[thread].IsItem());
    if (thread < nodes) frontier[thread] = places.node[thread];
    __syncthreads();
  }
  if (thread >= k) return;
  // A graph may be replayed when there are fewer: the first one again is as good as any.
  const uint32_t slot = frontier[thread < nodes ? thread : 0];
  if (output.slots != nullptr) output.slots[thread] = slot;
  if (output.keys != nullptr) output.keys[thread] = view.keys[slot];
  if (output.probabilities != nullptr) output.probabilities[thread] = 1;
  if (output.weights != nullptr) output.weights[thread] = 1;
}

}  // namespace

cudaError_t LaunchTop(const SelectionView& view, uint32_t k, const DrawOutput& output,
                      cudaStream_t stream) {
  return Launch(Top, 1, kMost, 0, stream, view, k, output);
}

}  // namespace gear_reverb::cuda
