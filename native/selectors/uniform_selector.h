// Every item with the same probability.
#pragma once

#include "native/selectors/checked_selector.h"
#include "native/selectors/dense_slots.h"

namespace gear_reverb::selectors {

class UniformSelector final : public CheckedSelector {
 public:
  SelectorOptions options() const override { return UniformOptions{}; }

 protected:
  void DoReserve(size_t count, size_t size) override { slots_.Reserve(count, size); }
  void DoInsert(absl::Span<const Slot> slots, absl::Span<const double>) override {
    for (const Slot slot : slots) slots_.Insert(slot);
  }
  void DoUpdate(absl::Span<const Slot>, absl::Span<const double>) override {}
  void DoErase(absl::Span<const Slot> slots) override {
    for (const Slot slot : slots) slots_.Erase(slot);
  }
  void DoReplace(absl::Span<const Slot>, absl::Span<const double>) override {}
  void DoSample(base::Philox& random, absl::Span<Draw> draws) const override {
    slots_.Sample(random, draws);
  }
  void DoClear() override { slots_.Clear(); }

 private:
  DenseSlots slots_;
};

}  // namespace gear_reverb::selectors
