// Nodes of a wide tree in the hands of eight lanes, and ways from the root to a leaf. Loads are 16
// bytes wide and those of a node contiguous. All lanes of a warp must call together.
#pragma once

#include <cstdint>

#include "native/base/philox_block.h"
#include "native/cuda/intrinsics.cuh"
#include "native/device/wide_tree.h"

namespace gear_reverb::cuda {

using device::Four;
using device::kFanout;
using device::kLanes;
using device::Rank;

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

__device__ inline uint32_t LaneOfNode() { return threadIdx.x % kLanes; }

// The bits of this node's lanes, of a ballot of the warp.
__device__ inline uint32_t VotesOfNode(bool vote) {
  return __ballot_sync(kAllLanes, vote) >> (threadIdx.x % kWarp / kLanes * kLanes) & 0xff;
}

// A value of another lane of this node.
__device__ inline uint32_t FromLane(uint32_t value, uint32_t lane) {
  return __shfl_sync(kAllLanes, value, lane, kLanes);
}
__device__ inline uint64_t FromLane(uint64_t value, uint32_t lane) {
  const uint64_t high = FromLane(static_cast<uint32_t>(value >> 32), lane);
  return high << 32 | FromLane(static_cast<uint32_t>(value), lane);
}
__device__ inline double FromLane(double value, uint32_t lane) {
  return device::DoubleOf(FromLane(device::BitsOf(value), lane));
}
__device__ inline Rank FromLane(const Rank& value, uint32_t lane) {
  return {FromLane(value.key, lane), FromLane(value.stamp, lane)};
}

// By name, since the compiler may cut a plain load of 16 bytes in two.
__device__ inline uint4 LoadPiece(const void* pieces, uint32_t index) {
  return __ldca(static_cast<const uint4*>(pieces) + index);
}
__device__ inline uint64_t Join(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

__device__ inline Rank LoadRank(const Rank* ranks, uint32_t index) {
  const uint4 piece = LoadPiece(ranks, index);
  return {Join(piece.x, piece.y), Join(piece.z, piece.w)};
}

// The children of one lane.
__device__ inline Four<double> LoadFour(const double* node, uint32_t lane) {
  const uint4 a = LoadPiece(node, lane), b = LoadPiece(node, kLanes + lane);
  return {{device::DoubleOf(Join(a.x, a.y)), device::DoubleOf(Join(a.z, a.w)),
           device::DoubleOf(Join(b.x, b.y)), device::DoubleOf(Join(b.z, b.w))}};
}
__device__ inline Four<uint32_t> LoadFour(const uint32_t* node, uint32_t lane) {
  const uint4 a = LoadPiece(node, lane);
  return {{a.x, a.y, a.z, a.w}};
}
__device__ inline Four<Rank> LoadFour(const Rank* node, uint32_t lane) {
  return {{LoadRank(node, lane), LoadRank(node, kLanes + lane), LoadRank(node, 2 * kLanes + lane),
           LoadRank(node, 3 * kLanes + lane)}};
}

// What a node combines to, in every lane. Lanes exchange, so the association is that of a binary
// tree over the lanes.
template <typename T>
__device__ inline T CombineNode(const T* node, uint32_t lane) {
  T value = LoadFour(node, lane).Combined();
  for (uint32_t mask = 1; mask < kLanes; mask *= 2) {
    value = device::Combine(value, FromLane(value, lane ^ mask));
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
__device__ inline Found<T> FindChild(const T* node, uint32_t lane, T target) {
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

struct Drawn {
  uint32_t slot;
  double probability;
};

// A draw in proportion to the leaves, of which one is positive.
template <typename T>
__device__ inline Drawn DrawFrom(const device::TreeView<T>& tree, uint64_t bits) {
  const uint32_t lane = LaneOfNode();
  const T total = tree.level[tree.top][0];
  Found<T> found{0, 0, device::FirstTarget(bits, total), T()};
  uint32_t node = 0;
  for (int level = tree.top - 1; level >= 0; --level) {
    found = FindChild(tree.level[level] + size_t{node} * kFanout, lane, found.target);
    node = node * kFanout + found.child;
  }
  const double value = static_cast<double>(FromLane(found.value, found.owner));
  return {node, device::Divide(value, static_cast<double>(total))};
}

// The first item of an order; there is one.
__device__ inline Drawn FirstInOrder(const device::TreeView<Rank>& tree) {
  const uint32_t lane = LaneOfNode();
  const Rank first = LoadRank(tree.level[tree.top], 0);
  uint32_t node = 0;
  for (int level = tree.top - 1; level >= 0; --level) {
    const Four<Rank> four = LoadFour(tree.level[level] + size_t{node} * kFanout, lane);
    uint32_t which = 4;
    for (uint32_t i = 0; i < 4; ++i) {
      if (four.child[i].Is(first)) which = i;
    }
    const uint32_t owner = (__ffs(VotesOfNode(which < 4)) - 1) % kLanes;
    node = node * kFanout + device::ChildOf<Rank>(owner, FromLane(which, owner) % 4);
  }
  return {node, 1.0};
}

}  // namespace gear_reverb::cuda
