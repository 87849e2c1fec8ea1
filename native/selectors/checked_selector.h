// What every selector shares: the checks that make a batch happen entirely or not at all.
#pragma once

#include "native/selectors/selector.h"
#include "native/selectors/slot_set.h"

namespace gear_reverb::selectors {

// No slot: ends lists and marks what is absent.
inline constexpr Slot kNoSlot = UINT32_MAX;

// Checks arguments, then hands batches that cannot fail to the strategy. Errors: INVALID_ARGUMENT
// for priorities and lengths, ALREADY_EXISTS, NOT_FOUND, FAILED_PRECONDITION for a draw from
// nothing, RESOURCE_EXHAUSTED when memory cannot be had.
class CheckedSelector : public Selector {
 public:
  absl::Status Insert(absl::Span<const Slot> slots, absl::Span<const double> priorities) final;
  absl::Status Update(absl::Span<const Slot> slots, absl::Span<const double> priorities) final;
  absl::Status Erase(absl::Span<const Slot> slots) final;
  absl::Status Replace(absl::Span<const Slot> slots, absl::Span<const double> priorities) final;
  absl::Status Sample(base::Philox& random, absl::Span<Draw> draws) const final;
  void Clear() final;
  size_t size() const final { return held_.size(); }

 protected:
  // Makes room for slots below `count`, of which there will be at most `size`. May throw
  // std::bad_alloc, with nothing lost.
  virtual void DoReserve(size_t count, size_t size) = 0;
  virtual void DoInsert(absl::Span<const Slot> slots, absl::Span<const double> priorities) = 0;
  virtual void DoUpdate(absl::Span<const Slot> slots, absl::Span<const double> priorities) = 0;
  // The slots are distinct.
  virtual void DoErase(absl::Span<const Slot> slots) = 0;
  virtual void DoReplace(absl::Span<const Slot> slots, absl::Span<const double> priorities) {
    DoErase(slots);
    DoInsert(slots, priorities);
  }
  // The selector is not empty.
  virtual void DoSample(base::Philox& random, absl::Span<Draw> draws) const = 0;
  virtual void DoClear() = 0;

 private:
  SlotSet held_;
};

}  // namespace gear_reverb::selectors
