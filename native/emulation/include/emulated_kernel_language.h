// CUDA's C++ for the CPU: what kernels need of it, by the same names.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "native/emulation/block.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// Of a block, whose threads take turns on one thread of the CPU.
#define __shared__ static thread_local

using std::max;
using std::min;

struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

inline void __syncthreads() { gear_reverb::emulation::MeetBlock(false); }
inline int __syncthreads_count(bool vote) {
  return static_cast<int>(gear_reverb::emulation::MeetBlock(vote));
}
inline int __syncthreads_or(bool vote) { return __syncthreads_count(vote) > 0 ? 1 : 0; }
inline void __syncwarp() {
  gear_reverb::emulation::MeetLanes(gear_reverb::emulation::Meeting::kSync, ~0u, 0, 0);
}
inline uint32_t __shfl_sync(uint32_t mask, uint32_t value, uint32_t from, uint32_t width) {
  const uint32_t first = threadIdx.x % 32 / width * width;
  return gear_reverb::emulation::MeetLanes(gear_reverb::emulation::Meeting::kShuffle, mask, value,
                                           first + from % width);
}
inline uint32_t __ballot_sync(uint32_t mask, bool vote) {
  return gear_reverb::emulation::MeetLanes(gear_reverb::emulation::Meeting::kBallot, mask,
                                           vote ? 1 : 0, 0);
}

// Threads of an emulated grid run one at a time.
template <typename T>
T atomicMin(T* at, T value) {
  const T before = *at;
  *at = std::min(before, value);
  return before;
}
template <typename T>
T atomicMax(T* at, T value) {
  const T before = *at;
  *at = std::max(before, value);
  return before;
}
template <typename T>
T atomicCAS(T* at, T expected, T value) {
  const T before = *at;
  if (before == expected) *at = value;
  return before;
}

inline uint32_t __popc(uint32_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }
inline uint32_t __ffs(uint32_t bits) { return static_cast<uint32_t>(__builtin_ffs(bits)); }
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift & 31));
}
// Kernels load whole words, of which memory is made, for some of their bytes; the others may be
// nobody's.
__attribute__((no_sanitize_address)) inline uint4 __ldcs(const uint4* word) {
  return {word->x, word->y, word->z, word->w};
}
inline uint4 __ldca(const uint4* word) { return *word; }
inline float __uint_as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline float __uint2float_rn(uint32_t value) { return static_cast<float>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
