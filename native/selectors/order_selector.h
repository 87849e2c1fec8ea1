// The oldest item (FIFO) or the youngest (LIFO), by time of insertion; updates do not change it.
#pragma once

#include "native/selectors/checked_selector.h"

namespace gear_reverb::selectors {

// A doubly linked list through arrays indexed by slot: eight bytes an item, every operation O(1).
class OrderSelector final : public CheckedSelector {
 public:
  enum class Pick { kOldest, kYoungest };
  explicit OrderSelector(Pick pick) : pick_(pick) {}

  SelectorOptions options() const override;
  bool NextOut(absl::Span<Slot> slots) const override;

 protected:
  void DoReserve(size_t count, size_t) override { links_.Reserve(count); }
  void DoInsert(absl::Span<const Slot> slots, absl::Span<const double>) override;
  void DoUpdate(absl::Span<const Slot>, absl::Span<const double>) override {}
  void DoErase(absl::Span<const Slot> slots) override;
  void DoReplace(absl::Span<const Slot> slots, absl::Span<const double> priorities) override;
  void DoSample(base::Philox& random, absl::Span<Draw> draws) const override;
  void DoClear() override;

 private:
  struct Link {
    Slot older;
    Slot younger;
  };

  const Pick pick_;
  base::HugeArray<Link> links_;
  Slot oldest_ = kNoSlot;
  Slot youngest_ = kNoSlot;
};

}  // namespace gear_reverb::selectors
