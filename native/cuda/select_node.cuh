// One node of a wide tree in the hands of eight lanes. Their loads are 16 bytes wide and
// contiguous.
#pragma once

#include <cstdint>

#include "native/device/wide_tree.h"

namespace gear_reverb::cuda {

using device::Four;
using device::kFanout;
using device::kLanes;
using device::Rank;

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

__device__ __forceinline__ uint32_t LaneOfNode() { return threadIdx.x % kLanes; }
// The bits of this node's lanes, of a ballot of the warp.
__device__ __forceinline__ uint32_t VotesOfNode(bool vote) {
  return __ballot_sync(kAllLanes, vote) >> (threadIdx.x % kWarp / kLanes * kLanes) & 0xff;
}

// The children of one lane; `node` is aligned to 16 bytes at least.
__device__ __forceinline__ Four<double> LoadFour(const double* node, uint32_t lane) {
  const double2* const pieces = reinterpret_cast<const double2*>(node);
  const double2 a = pieces[lane], b = pieces[kLanes + lane];
  return {{a.x, a.y, b.x, b.y}};
}
__device__ __forceinline__ Four<uint32_t> LoadFour(const uint32_t* node, uint32_t lane) {
  const uint4 a = reinterpret_cast<const uint4*>(node)[lane];
  return {{a.x, a.y, a.z, a.w}};
}
__device__ __forceinline__ Rank LoadRank(const Rank* rank) {
  const ulonglong2 a = *reinterpret_cast<const ulonglong2*>(rank);
  return {a.x, a.y};
}
__device__ __forceinline__ Four<Rank> LoadFour(const Rank* node, uint32_t lane) {
  return {{LoadRank(node + lane), LoadRank(node + kLanes + lane),
           LoadRank(node + 2 * kLanes + lane), LoadRank(node + 3 * kLanes + lane)}};
}

// A value of another lane of this node.
template <typename T>
__device__ __forceinline__ T FromLane(T value, uint32_t lane) {
  return __shfl_sync(kAllLanes, value, lane, kLanes);
}
template <typename T>
__device__ __forceinline__ T FromLaneXor(T value, uint32_t mask) {
  return __shfl_xor_sync(kAllLanes, value, mask, kLanes);
}
__device__ __forceinline__ Rank FromLaneXor(Rank value, uint32_t mask) {
  return {FromLaneXor(value.key, mask), FromLaneXor(value.stamp, mask)};
}

// What a node combines to, in every lane. Lanes exchange, so the association is that of a binary
// tree over the lanes.
template <typename T>
__device__ __forceinline__ T CombineNode(const T* node, uint32_t lane) {
  T value = LoadFour(node, lane).Combined();
  for (uint32_t mask = 1; mask < kLanes; mask *= 2) {
    value = device::Combine(value, FromLaneXor(value, mask));
  }
  return value;
}

// The child in which the cumulative sum passes `target` < CombineNode(node): its place, what is
// left of the target, and (in lane `owner` alone) its value.
template <typename T>
struct Found {
  uint32_t child;
  uint32_t owner;
  T target;
  T value;
};

template <typename T>
__device__ __forceinline__ Found<T> FindChild(const T* node, uint32_t lane, T target) {
  const Four<T> four = LoadFour(node, lane);
  const T value = four.Combined();
  // Cumulative sums by doubling: a lane whose bit k is set adds the last of the 2^k lanes before
  // its own 2^k.
  T end = value;
  for (uint32_t width = 1; width < kLanes; width *= 2) {
    const T before = FromLane(end, (lane & ~(2 * width - 1)) | (width - 1));
    if ((lane & width) != 0) end = device::Combine(before, end);
  }
  const uint32_t passed = __popc(VotesOfNode(target >= end));
  const uint32_t owner = passed < kLanes ? passed : kLanes - 1;
  const T before = FromLane(end, (owner - 1) % kLanes);
  target = device::Rest(target, owner == 0 ? T() : before, FromLane(value, owner));
  const device::Step<T> step = device::StepAmongFour(four, target);
  return {device::ChildOf<T>(owner, FromLane(step.index, owner)), owner,
          FromLane(step.target, owner), step.value};
}

}  // namespace gear_reverb::cuda
