// Weights by slot, with draws in proportion to weight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "native/base/huge_array.h"
#include "native/base/philox.h"
#include "native/selectors/selector.h"

namespace gear_reverb::selectors {

// A 16-ary tree of sums. Every sum is recomputed from its children in one fixed order and never
// adjusted by a difference, so the tree is a pure function of the weights: no error grows with
// the number of updates, and a total is within a factor (1 + 2^-53)^(4 L) of the exact sum, where
// L <= 8 is the number of levels. A draw never returns a slot of weight zero.
//
// Memory: 8.6 bytes a slot. Updates and draws of a batch go level by level, so that their cache
// misses overlap. Thread-compatible.
class SumTree {
 public:
  // Positive weights must lie between these, so that sums stay finite and draws precise.
  static constexpr double kMinWeight = 0x1p-1022;
  static constexpr double kMaxWeight = 0x1p+990;

  // Room for slots below `count`, at weight zero.
  void Reserve(size_t count);
  // Sets the weight of every slot, in order. The slots have been reserved.
  void Assign(absl::Span<const Slot> slots, absl::Span<const double> weights);
  // Fills `draws`, one random number each. The total is positive.
  void Sample(base::Philox& random, absl::Span<Draw> draws) const;
  void Clear();

  double weight(Slot slot) const { return levels_[0][slot]; }
  double total() const { return total_; }

 private:
  static constexpr size_t kFanout = 16;
  static constexpr size_t kMaxLevels = 8;  // 16^8 slots.

  // Recomputes the sums above up to kBlock slots.
  static constexpr size_t kBlock = 1024;
  void AssignBlock(absl::Span<const Slot> slots, absl::Span<const double> weights);

  // Sets the bit of `node`; true if it was not set.
  static bool Mark(base::HugeArray<uint64_t>& bits, uint32_t node);

  // levels_[0] holds the weights; levels_[l + 1][n] is the sum of levels_[l][16 n … 16 n + 15].
  // levels_[top_] has one group of 16, which sums to total_.
  std::array<base::HugeArray<double>, kMaxLevels> levels_;
  // marks_[l][n]: levels_[l][n] waits for its recomputation. All clear between operations.
  std::array<base::HugeArray<uint64_t>, kMaxLevels> marks_;
  size_t top_ = 0;
  size_t count_ = 0;
  double total_ = 0;
};

}  // namespace gear_reverb::selectors
