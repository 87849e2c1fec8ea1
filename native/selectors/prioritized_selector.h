// Items in proportion to priority ^ exponent: proportional prioritization of Schaul, Quan,
// Antonoglou and Silver, "Prioritized Experience Replay" (ICLR 2016).
#pragma once

#include "native/selectors/checked_selector.h"
#include "native/selectors/dense_slots.h"
#include "native/selectors/sum_tree.h"

namespace gear_reverb::selectors {

// As in Reverb, priority zero has weight zero even under exponent zero, and is never drawn while
// any item is positive; if all are zero, all are equally likely. Unlike in Reverb, the weight of a
// positive priority neither underflows to zero nor overflows: it is clamped to
// [SumTree::kMinWeight, SumTree::kMaxWeight]. About 17 bytes an item.
class PrioritizedSelector final : public CheckedSelector {
 public:
  // `exponent` is finite and not negative.
  explicit PrioritizedSelector(double exponent) : exponent_(exponent) {}

  SelectorOptions options() const override { return PrioritizedOptions{exponent_}; }

 protected:
  void DoReserve(size_t count, size_t size) override;
  void DoInsert(absl::Span<const Slot> slots, absl::Span<const double> priorities) override;
  void DoUpdate(absl::Span<const Slot> slots, absl::Span<const double> priorities) override;
  void DoErase(absl::Span<const Slot> slots) override;
  void DoReplace(absl::Span<const Slot> slots, absl::Span<const double> priorities) override {
    DoUpdate(slots, priorities);
  }
  void DoSample(base::Philox& random, absl::Span<Draw> draws) const override;
  void DoClear() override;

 private:
  double Weight(double priority) const;

  const double exponent_;
  SumTree tree_;
  DenseSlots slots_;  // For draws when every weight is zero.
};

}  // namespace gear_reverb::selectors
