#include "native/selectors/heap_selector.h"

#include <algorithm>

namespace gear_reverb::selectors {
namespace {
constexpr size_t kFanout = 4;
}  // namespace

void HeapSelector::DoReserve(size_t count, size_t size) {
  place_.Reserve(count);
  nodes_.Reserve(size);
}

void HeapSelector::DoInsert(absl::Span<const Slot> slots, absl::Span<const double> priorities) {
  for (size_t i = 0; i < slots.size(); ++i) {
    Settle(size_++, {sign_ * priorities[i], next_stamp_++, slots[i]});
  }
}

void HeapSelector::DoUpdate(absl::Span<const Slot> slots, absl::Span<const double> priorities) {
  for (size_t i = 0; i < slots.size(); ++i) {
    Settle(place_[slots[i]], {sign_ * priorities[i], next_stamp_++, slots[i]});
  }
}

void HeapSelector::DoErase(absl::Span<const Slot> slots) {
  for (const Slot slot : slots) {
    const size_t place = place_[slot];
    const Node last = nodes_[--size_];
    if (place < size_) Settle(place, last);
  }
}

void HeapSelector::Settle(size_t place, const Node& node) {
  while (place > 0) {
    const size_t parent = (place - 1) / kFanout;
    if (!node.Before(nodes_[parent])) break;
    Put(place, nodes_[parent]);
    place = parent;
  }
  while (true) {
    const size_t begin = kFanout * place + 1;
    if (begin >= size_) break;
    const size_t end = std::min(begin + kFanout, size_);
    size_t first = begin;
    for (size_t child = begin + 1; child < end; ++child) {
      if (nodes_[child].Before(nodes_[first])) first = child;
    }
    if (!nodes_[first].Before(node)) break;
    Put(place, nodes_[first]);
    place = first;
  }
  Put(place, node);
}

void HeapSelector::DoSample(base::Philox&, absl::Span<Draw> draws) const {
  std::fill(draws.begin(), draws.end(), Draw{nodes_[0].slot, 1.0});
}

void HeapSelector::DoClear() {
  nodes_.Clear();
  place_.Clear();
  size_ = 0;
  next_stamp_ = 0;
}

}  // namespace gear_reverb::selectors
