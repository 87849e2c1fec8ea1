// Draws: eight lanes walk from the root to a leaf, four draws a warp.
//
// Traffic of a weighted draw from N items: ceil(log32 N) nodes of 256 bytes. For 10^8 items these
// are six levels, of which the leaves (800 MB) come from device memory, the level above (25 MB)
// mostly and the others (0.8 MB in all) always from the caches. 2^20 draws so read 0.27 GB of
// device memory and 1.6 GB of cache, at two wide loads and 15 exchanges of lanes a level. A thread
// for each draw would touch 32 lines with every load instruction, and a warp for each draw would
// exchange lanes four times as often.
#include "native/cuda/launch.cuh"
#include "native/cuda/select_kernels.h"
#include "native/cuda/select_node.cuh"

namespace gear_reverb::cuda {
namespace {

using device::DrawOutput;
using device::DrawState;
using device::SelectionView;

constexpr uint32_t kThreads = 256;

uint32_t Blocks(uint64_t threads) {
  return static_cast<uint32_t>((threads + kThreads - 1) / kThreads);
}

// Expects state->least_probability to be above every probability.
__global__ void __launch_bounds__(kThreads)
    Draw(const __grid_constant__ SelectionView view, DrawState* state, uint32_t n,
         const DrawOutput output) {
  const uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / kLanes;
  const uint64_t bits = base::PhiloxNumber(state->seed, state->position + i);
  Drawn drawn;
  if (view.ranks.top > 0) {
    drawn = FirstInOrder(view.ranks);
  } else if (view.weights.top > 0 && view.weights.level[view.weights.top][0] > 0) {
    drawn = DrawFrom(view.weights, bits);
  } else {
    drawn = DrawFrom(view.counts, bits);
  }
  if (LaneOfNode() != 0 || i >= n) return;
  if (output.slots != nullptr) output.slots[i] = drawn.slot;
  if (output.keys != nullptr) output.keys[i] = view.keys[drawn.slot];
  if (output.probabilities != nullptr) output.probabilities[i] = drawn.probability;
  // Positive doubles are ordered as their bits are. Few draws are the least so far.
  auto* const least = reinterpret_cast<unsigned long long*>(&state->least_probability);
  const unsigned long long mine = device::BitsOf(drawn.probability);
  if (mine < *const_cast<const volatile unsigned long long*>(least)) atomicMin(least, mine);
}

// After all draws of the call.
__global__ void __launch_bounds__(kThreads)
    FinishDraw(DrawState* state, uint32_t n, double beta, const double* probabilities,
               float* weights) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i == 0) state->position += n;
  if (weights == nullptr || i >= n) return;
  weights[i] =
      device::ImportanceWeight(probabilities[i], device::DoubleOf(state->least_probability), beta);
}

}  // namespace

cudaError_t LaunchDraw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                       const DrawOutput& output, cudaStream_t stream) {
  cudaError_t error =
      cudaMemsetAsync(&state->least_probability, 0xff, sizeof(state->least_probability), stream);
  if (error != cudaSuccess) return error;
  error = Launch(Draw, Blocks(uint64_t{n} * kLanes), kThreads, 0, stream, view, state, n, output);
  if (error != cudaSuccess) return error;
  return Launch(FinishDraw, output.weights == nullptr ? 1 : Blocks(n), kThreads, 0, stream, state,
                n, beta, output.probabilities, output.weights);
}

}  // namespace gear_reverb::cuda
