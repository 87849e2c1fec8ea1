// From drawn slots to the rows of a gather. All of it is small beside the gather: a thread moves
// the 16 bytes of a piece, so a batch of 1024 items of three columns in four pieces moves 0.2 MB.
#include "native/cuda/draw_kernels.h"
#include "native/cuda/launch.cuh"

namespace gear_reverb::cuda {
namespace {

using device::DirectoryView;
using device::EntryChanges;
using device::Picked;

constexpr uint32_t kStepsOfBlock = 256;
constexpr uint32_t kWeightThreads = 1024;

// Calls step(i) for all i below `steps`, in any order.
template <typename Step>
__device__ void ForSteps(uint64_t steps, Step step) {
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < steps;
       i += uint64_t{gridDim.x} * blockDim.x) {
    step(i);
  }
}

__global__ void __launch_bounds__(kStepsOfBlock)
    WriteEntries(const DirectoryView directory, const EntryChanges changes) {
  ForSteps(changes.Steps(directory),
           [&](uint64_t i) { device::WriteEntry(directory, changes, i); });
}

__global__ void __launch_bounds__(kStepsOfBlock)
    PickRows(const DirectoryView directory, const Picked picked) {
  ForSteps(picked.Steps(directory), [&](uint64_t i) { device::Pick(directory, picked, i); });
}

// One block, since all weights depend on the least probability; it is not worth a second launch.
__global__ void __launch_bounds__(kWeightThreads)
    WeightsOfDraws(const double* probabilities, uint32_t n, double beta, float* weights) {
  __shared__ unsigned long long least;
  if (threadIdx.x == 0) least = ~0ull;
  __syncthreads();
  // Positive doubles are ordered as their bits are.
  unsigned long long mine = ~0ull;
  for (uint32_t i = threadIdx.x; i < n; i += kWeightThreads) {
    const unsigned long long bits = device::BitsOf(probabilities[i]);
    mine = bits < mine ? bits : mine;
  }
  atomicMin(&least, mine);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kWeightThreads) {
    weights[i] = device::ImportanceWeight(probabilities[i], device::DoubleOf(least), beta);
  }
}

uint32_t BlocksFor(uint64_t steps) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 16;
  const uint64_t blocks = (steps + kStepsOfBlock - 1) / kStepsOfBlock;
  return static_cast<uint32_t>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace

cudaError_t LaunchWriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                               cudaStream_t stream) {
  const uint64_t steps = changes.Steps(directory);
  if (steps == 0) return cudaSuccess;
  return Launch(WriteEntries, BlocksFor(steps), kStepsOfBlock, 0, stream, directory, changes);
}

cudaError_t LaunchPick(const DirectoryView& directory, const Picked& picked, cudaStream_t stream) {
  const uint64_t steps = picked.Steps(directory);
  if (steps == 0) return cudaSuccess;
  return Launch(PickRows, BlocksFor(steps), kStepsOfBlock, 0, stream, directory, picked);
}

cudaError_t LaunchWeights(const double* probabilities, uint32_t n, double beta, float* weights,
                          cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  return Launch(WeightsOfDraws, 1, kWeightThreads, 0, stream, probabilities, n, beta, weights);
}

}  // namespace gear_reverb::cuda
