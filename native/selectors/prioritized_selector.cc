#include "native/selectors/prioritized_selector.h"

#include <algorithm>
#include <cmath>

namespace gear_reverb::selectors {
namespace {
constexpr size_t kBlock = 256;
}  // namespace

double PrioritizedSelector::Weight(double priority) const {
  if (priority == 0) return 0;
  const double weight = exponent_ == 1 ? priority : std::pow(priority, exponent_);
  return std::clamp(weight, SumTree::kMinWeight, SumTree::kMaxWeight);
}

void PrioritizedSelector::DoReserve(size_t count, size_t size) {
  tree_.Reserve(count);
  slots_.Reserve(count, size);
}

void PrioritizedSelector::DoInsert(absl::Span<const Slot> slots,
                                   absl::Span<const double> priorities) {
  for (const Slot slot : slots) slots_.Insert(slot);
  DoUpdate(slots, priorities);
}

void PrioritizedSelector::DoUpdate(absl::Span<const Slot> slots,
                                   absl::Span<const double> priorities) {
  double weights[kBlock];
  while (!slots.empty()) {
    const size_t size = std::min(kBlock, slots.size());
    for (size_t i = 0; i < size; ++i) weights[i] = Weight(priorities[i]);
    tree_.Assign(slots.first(size), absl::MakeConstSpan(weights, size));
    slots.remove_prefix(size);
    priorities.remove_prefix(size);
  }
}

void PrioritizedSelector::DoErase(absl::Span<const Slot> slots) {
  const double zeros[kBlock] = {};
  for (const Slot slot : slots) slots_.Erase(slot);
  while (!slots.empty()) {
    const size_t size = std::min(kBlock, slots.size());
    tree_.Assign(slots.first(size), absl::MakeConstSpan(zeros, size));
    slots.remove_prefix(size);
  }
}

void PrioritizedSelector::DoSample(base::Philox& random, absl::Span<Draw> draws) const {
  if (tree_.total() > 0) {
    tree_.Sample(random, draws);
  } else {
    slots_.Sample(random, draws);
  }
}

void PrioritizedSelector::DoClear() {
  tree_.Clear();
  slots_.Clear();
}

}  // namespace gear_reverb::selectors
