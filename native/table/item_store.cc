#include "native/table/item_store.h"

#include <utility>

namespace gear_reverb::table {

Slot ItemStore::Insert(Item&& item) {
  Slot slot = free_;
  if (slot != kNone) {
    free_ = record(slot).next;
  } else {
    if (used_ == kNone) return kNone;
    slot = static_cast<Slot>(used_);
    if (slot / kPageSlots == pages_.size()) pages_.push_back(std::make_unique<Page>());
    ++used_;
  }
  pages_[slot / kPageSlots]->keys[slot % kPageSlots] = item.key;
  Record& added = record(slot);
  added.trajectory = std::move(item.trajectory);
  added.priority = item.priority;
  added.inserted_at_ns = absl::ToUnixNanos(item.inserted_at);
  added.times_sampled = item.times_sampled;
  added.previous = newest_;
  added.next = kNone;
  (newest_ == kNone ? oldest_ : record(newest_).next) = slot;
  newest_ = slot;
  slots_.emplace(item.key, slot);
  return slot;
}

storage::TrajectoryPtr ItemStore::Erase(Slot slot) {
  Record& erased = record(slot);
  slots_.erase(key(slot));
  (erased.previous == kNone ? oldest_ : record(erased.previous).next) = erased.next;
  (erased.next == kNone ? newest_ : record(erased.next).previous) = erased.previous;
  erased.next = free_;
  free_ = slot;
  return std::move(erased.trajectory);
}

Item ItemStore::Get(Slot slot) const {
  const Record& from = record(slot);
  Item item;
  item.key = key(slot);
  item.priority = from.priority;
  item.times_sampled = from.times_sampled;
  item.inserted_at = absl::FromUnixNanos(from.inserted_at_ns);
  item.trajectory = from.trajectory;
  return item;
}

}  // namespace gear_reverb::table
