// Batches of changes: leaves, then the nodes above them, one level a launch.
//
// Traffic of n changes of a tree with L levels: each reads its state, writes a leaf, and L times
// reads a node of 128 to 512 bytes and writes 4 to 16; so 4096 changes move less than 15 MB, and
// the time is that of L + 3 short launches in a row: it grows with L, the logarithm of the table's
// size. Changes under one node compute it several times, to the same bits, which needs no
// agreement among them; a level with fewer nodes than there are changes is recomputed whole.
#include "native/cuda/launch.cuh"
#include "native/cuda/select_kernels.h"
#include "native/cuda/select_node.cuh"

namespace gear_reverb::cuda {
namespace {

using device::ClaimTable;
using device::SelectionView;
using device::SlotState;
using device::TreeView;

constexpr uint32_t kThreads = 256;

__host__ __device__ uint32_t Blocks(uint64_t threads) {
  return static_cast<uint32_t>((threads + kThreads - 1) / kThreads);
}

__device__ __forceinline__ uint32_t FirstPlace(uint32_t slot, uint32_t mask) {
  return (slot * 0x9E3779B1u >> 7) & mask;
}

// Every slot of the batch gets a place, which ends with the index of its last state.
__global__ void __launch_bounds__(kThreads)
    Claim(const SlotState* states, uint32_t n, const ClaimTable claims) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const uint32_t slot = states[i].slot;
  uint32_t place = FirstPlace(slot, claims.mask);
  while (true) {
    const uint32_t found = atomicCAS(&claims.slots[place], device::kNoSlot, slot);
    if (found == device::kNoSlot || found == slot) break;
    place = (place + 1) & claims.mask;
  }
  atomicMax(&claims.last[place], static_cast<int32_t>(i));
}

__global__ void __launch_bounds__(kThreads)
    WriteLeaves(const __grid_constant__ SelectionView view, const SlotState* states, uint32_t n,
                const ClaimTable claims) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const uint4 a = LoadPiece(states + i, 0), b = LoadPiece(states + i, 1);
  const SlotState state{Join(a.x, a.y), device::DoubleOf(Join(a.z, a.w)), Join(b.x, b.y), b.z, b.w};
  uint32_t place = FirstPlace(state.slot, claims.mask);
  while (claims.slots[place] != state.slot) place = (place + 1) & claims.mask;
  if (claims.last[place] != static_cast<int32_t>(i)) return;
  view.keys[state.slot] = state.key;
  if (view.counts.top > 0) view.counts.level[0][state.slot] = state.held;
  if (view.weights.top > 0) {
    view.weights.level[0][state.slot] = device::WeightOf(state, view.exponent);
  }
  if (view.ranks.top > 0) {
    view.ranks.level[0][state.slot] = device::RankOf(state, view.strategy);
  }
}

// Nodes `node` of one level, or the ones above the slots of `states`, `shift` bits up.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ResumLevel(const T* below, T* level, const SlotState* states, uint32_t n, uint32_t shift) {
  const uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / kLanes;
  const uint32_t nearest = i < n ? i : n - 1;  // All lanes of a warp take part in exchanges.
  const uint32_t node = states == nullptr ? nearest : states[nearest].slot >> shift;
  const uint32_t lane = LaneOfNode();
  const T value = CombineNode(below + size_t{node} * kFanout, lane);
  if (lane == 0 && i < n) level[node] = value;
}

template <typename T>
cudaError_t ResumTree(const TreeView<T>& tree, const SlotState* states, uint32_t n,
                      cudaStream_t stream) {
  for (int level = 1; level <= tree.top; ++level) {
    const uint32_t count = tree.count[level];
    const SlotState* const above = states != nullptr && n < count ? states : nullptr;
    const uint32_t nodes = above == nullptr ? count : n;
    const cudaError_t error =
        Launch(ResumLevel<T>, Blocks(uint64_t{nodes} * kLanes), kThreads, 0, stream,
               tree.level[level - 1], tree.level[level], above, nodes, 5 * level);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t LaunchWrite(const SelectionView& view, const SlotState* states, uint32_t n,
                        const ClaimTable& claims, cudaStream_t stream) {
  const cudaError_t error = Launch(Claim, Blocks(n), kThreads, 0, stream, states, n, claims);
  if (error != cudaSuccess) return error;
  return Launch(WriteLeaves, Blocks(n), kThreads, 0, stream, view, states, n, claims);
}

cudaError_t LaunchResum(const SelectionView& view, const SlotState* states, uint32_t n,
                        bool members_changed, cudaStream_t stream) {
  if (members_changed) {
    const cudaError_t error = ResumTree(view.counts, states, n, stream);
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = ResumTree(view.weights, states, n, stream);
  return error != cudaSuccess ? error : ResumTree(view.ranks, states, n, stream);
}

}  // namespace gear_reverb::cuda
