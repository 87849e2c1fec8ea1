// A 32-ary tree over slots, in which every node holds what its 32 children combine to: the sum of
// weights (double), the number of items (uint32_t) or the first in an order (Rank).
//
// level[0] holds the leaves, by slot; level[l + 1][n] combines level[l][32 n … 32 n + 31]; level
// [top] has the root alone. A node is recomputed from its children and never adjusted by a
// difference, so the tree is a pure function of its leaves, and no error grows with the number of
// updates: a sum is within a factor (1 + 2^-53)^(5 top) of the exact one, top <= 7.
//
// Eight lanes share a node, four children each, so that a node of doubles is two cache lines read
// with two 16-byte loads a lane, and one of counts is one line. Host code walks the lanes in a
// loop and does the same operations in the same order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/philox_block.h"
#include "native/device/exact_math.h"

namespace gear_reverb::device {

inline constexpr uint32_t kFanout = 32;
inline constexpr uint32_t kLanes = 8;
inline constexpr int kMaxLevels = 7;  // 32^7 > 2^32 slots.
inline constexpr uint32_t kNoSlot = UINT32_MAX;

// A place in an order; the lower comes first. Items have distinct ranks.
struct alignas(16) Rank {
  uint64_t key = UINT64_MAX;
  uint64_t stamp = UINT64_MAX;

  GR_HOST_DEVICE bool Before(const Rank& other) const {
    return key != other.key ? key < other.key : stamp < other.stamp;
  }
  GR_HOST_DEVICE bool Is(const Rank& other) const {
    return key == other.key && stamp == other.stamp;
  }
  // Whether an item is here; where none is, the rank is after all others.
  GR_HOST_DEVICE bool IsItem() const { return !Is(Rank()); }
};

// Combines two children. (Addition commutes exactly, so only the association is fixed.)
GR_HOST_DEVICE double Combine(double a, double b) { return Add(a, b); }
GR_HOST_DEVICE uint32_t Combine(uint32_t a, uint32_t b) { return Add(a, b); }
GR_HOST_DEVICE Rank Combine(const Rank& a, const Rank& b) { return b.Before(a) ? b : a; }

// Pointers into a backend's memory; passed by value to kernels.
template <typename T>
struct TreeView {
  T* level[kMaxLevels + 1] = {};
  uint32_t count[kMaxLevels + 1] = {};  // Nodes in use; the memory is padded to a multiple of 32.
  int top = 0;                          // 0: there is no tree.
};

// The four children of one lane, and where they lie in the node: 16-byte pieces, dealt to the lanes
// in turn, so that the loads of eight lanes are contiguous.
template <typename T>
struct Four {
  T child[4];
  GR_HOST_DEVICE T Combined() const {
    return Combine(Combine(child[0], child[1]), Combine(child[2], child[3]));
  }
};

template <typename T>
GR_HOST_DEVICE uint32_t ChildOf(uint32_t lane, uint32_t which) {
  constexpr uint32_t kPiece = 16 / sizeof(T);
  return (which / kPiece * kLanes + lane) * kPiece + which % kPiece;
}

// Where a cumulative sum passes a target, and what is left of the target there.
template <typename T>
struct Step {
  uint32_t index;
  T target;  // In [0, value of the index).
  T value;   // Of the index.
};

// `target - before`, kept below the positive `value`, past which rounding might carry it.
GR_HOST_DEVICE double Rest(double target, double before, double value) {
  const double rest = Subtract(target, before);
  const double most = Below(value);
  return rest < most ? rest : most;
}
GR_HOST_DEVICE uint32_t Rest(uint32_t target, uint32_t before, uint32_t) {
  return Subtract(target, before);
}

// The child of one lane in which its cumulative sum passes `target` < Combined(). The cumulative
// sums are monotone under rounding and the last one is Combined(), so the child that is found
// raised them: it is positive.
template <typename T>
GR_HOST_DEVICE Step<T> StepAmongFour(const Four<T>& four, T target) {
  const T end0 = four.child[0];
  const T end1 = Combine(end0, four.child[1]);
  const T end2 = Combine(end1, four.child[2]);
  if (target < end0) return {0, target, four.child[0]};
  if (target < end1) return {1, Rest(target, end0, four.child[1]), four.child[1]};
  if (target < end2) return {2, Rest(target, end1, four.child[2]), four.child[2]};
  return {3, Rest(target, end2, four.child[3]), four.child[3]};
}

// The first target of a draw, from 64 uniform bits; `total` is positive.
GR_HOST_DEVICE double FirstTarget(uint64_t bits, double total) {
  const double target = Multiply(base::UniformDouble(bits), total);
  const double most = Below(total);
  return target < most ? target : most;
}

GR_HOST_DEVICE uint32_t FirstTarget(uint64_t bits, uint32_t total) {
  return static_cast<uint32_t>(base::UniformBelow(bits, total));
}

// An order-preserving map of finite doubles to integers; both zeros are the same.
GR_HOST_DEVICE uint64_t OrderOf(double x) {
  const uint64_t bits = BitsOf(Add(x, 0.0));
  return bits >> 63 != 0 ? ~bits : bits | (uint64_t{1} << 63);
}

}  // namespace gear_reverb::device
