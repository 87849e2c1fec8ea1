#include "native/table/item_store.h"

#include <algorithm>
#include <new>
#include <utility>

namespace gear_reverb::table {

void ItemStore::Fill(Slot slot, Item&& item) {
  pages_[slot / kPageSlots]->keys[slot % kPageSlots] = item.key;
  Record& added = record(slot);
  added.trajectory = std::move(item.trajectory);
  added.priority = item.priority;
  if (last_inserted_at_ns_ < INT64_MAX) ++last_inserted_at_ns_;
  last_inserted_at_ns_ = std::max(last_inserted_at_ns_, absl::ToUnixNanos(item.inserted_at));
  added.inserted_at_ns = last_inserted_at_ns_;
  added.times_sampled = item.times_sampled;
}

Slot ItemStore::Insert(Item&& item) {
  const bool anew = free_ == kNone;
  if (anew && used_ == kNone) return kNone;
  const Slot slot = anew ? static_cast<Slot>(used_) : free_;
  try {
    if (slot / kPageSlots == pages_.size()) pages_.push_back(std::make_unique<Page>());
    AddToIndex(item.key, slot);
  } catch (const std::bad_alloc&) {
    return kNone;
  }
  if (anew) {
    ++used_;
  } else {
    free_ = record(slot).next_free;
  }
  Fill(slot, std::move(item));
  return slot;
}

storage::TrajectoryPtr ItemStore::Erase(Slot slot) {
  Record& erased = record(slot);
  index_.Erase(key(slot), slot);
  erased.times_sampled = kFree;
  erased.next_free = free_;
  free_ = slot;
  return std::move(erased.trajectory);
}

storage::TrajectoryPtr ItemStore::Replace(Slot slot, Item&& item) {
  index_.Erase(key(slot), slot);
  AddToIndex(item.key, slot);  // There is room.
  storage::TrajectoryPtr erased = std::move(record(slot).trajectory);
  Fill(slot, std::move(item));
  return erased;
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
