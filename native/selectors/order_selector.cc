#include "native/selectors/order_selector.h"

#include <algorithm>

namespace gear_reverb::selectors {

SelectorOptions OrderSelector::options() const {
  if (pick_ == Pick::kOldest) return FifoOptions{};
  return LifoOptions{};
}

bool OrderSelector::NextOut(absl::Span<Slot> slots) const {
  if (pick_ == Pick::kYoungest) return slots.empty();
  Slot next = oldest_;
  for (Slot& slot : slots) {
    slot = next;
    next = links_[next].younger;
  }
  return true;
}

void OrderSelector::DoInsert(absl::Span<const Slot> slots, absl::Span<const double>) {
  for (const Slot slot : slots) {
    links_[slot] = {youngest_, kNoSlot};
    (youngest_ == kNoSlot ? oldest_ : links_[youngest_].younger) = slot;
    youngest_ = slot;
  }
}

void OrderSelector::DoErase(absl::Span<const Slot> slots) {
  for (const Slot slot : slots) {
    const Link link = links_[slot];
    (link.older == kNoSlot ? oldest_ : links_[link.older].younger) = link.younger;
    (link.younger == kNoSlot ? youngest_ : links_[link.younger].older) = link.older;
  }
}

// Where the oldest become the youngest, in order, all links but those at the ends stay.
void OrderSelector::DoReplace(absl::Span<const Slot> slots, absl::Span<const double> priorities) {
  Slot next = oldest_;
  for (const Slot slot : slots) {
    if (slot != next) return CheckedSelector::DoReplace(slots, priorities);
    next = links_[next].younger;
  }
  if (slots.empty() || next == kNoSlot) return;
  links_[next].older = kNoSlot;
  links_[youngest_].younger = oldest_;
  links_[oldest_].older = youngest_;
  oldest_ = next;
  youngest_ = slots.back();
  links_[youngest_].younger = kNoSlot;
}

void OrderSelector::DoSample(base::Philox&, absl::Span<Draw> draws) const {
  std::fill(draws.begin(), draws.end(), Draw{pick_ == Pick::kOldest ? oldest_ : youngest_, 1.0});
}

void OrderSelector::DoClear() {
  links_.Clear();
  oldest_ = youngest_ = kNoSlot;
}

}  // namespace gear_reverb::selectors
