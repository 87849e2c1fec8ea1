#include "native/table/item_store.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace gear_reverb::table {

ItemStore& ItemStore::operator=(ItemStore&& other) noexcept {
  std::swap(keys_, other.keys_);
  std::swap(records_, other.records_);
  std::swap(index_, other.index_);
  std::swap(used_, other.used_);
  std::swap(free_, other.free_);
  std::swap(last_inserted_at_ns_, other.last_inserted_at_ns_);
  std::swap(last_time_, other.last_time_);
  return *this;
}

ItemStore::~ItemStore() {
  for (uint64_t slot = 0; slot < used_; ++slot) std::destroy_at(&records_[slot]);
}

void ItemStore::Fill(Slot slot, Item&& item) {
  keys_[slot] = item.key;
  Record& added = record(slot);
  added.trajectory = std::move(item.trajectory);
  added.priority = item.priority;
  if (last_inserted_at_ns_ < INT64_MAX) ++last_inserted_at_ns_;
  if (item.inserted_at != last_time_) {  // Many have the same, and converting it takes time.
    last_time_ = item.inserted_at;
    last_inserted_at_ns_ = std::max(last_inserted_at_ns_, absl::ToUnixNanos(last_time_));
  }
  added.inserted_at_ns = last_inserted_at_ns_;
  added.times_sampled = item.times_sampled;
  added.row = item.row;
}

Slot ItemStore::Insert(Item&& item) {
  const bool anew = free_ == kNone;
  if (anew && used_ == kNone) return kNone;
  const Slot slot = anew ? static_cast<Slot>(used_) : free_;
  try {
    keys_.Reserve(size_t{slot} + 1);
    records_.Reserve(size_t{slot} + 1);
    AddToIndex(item.key, slot);
  } catch (const std::bad_alloc&) {
    return kNone;
  }
  if (anew) {
    new (&records_[slot]) Record;
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
  item.row = from.row;
  return item;
}

void ItemStore::Settle(Slot slot) {
  Item item = Get(slot);
  item.Settle();
  record(slot).trajectory = std::move(item.trajectory);
  record(slot).row = 0;
}

}  // namespace gear_reverb::table
