#include "native/table/item_store.h"

#include <algorithm>
#include <utility>

namespace gear_reverb::table {

ItemStore::ItemStore()
    : pages_(std::make_unique<Pages>()), slots_(0, Hash{{pages_.get()}}, Equal{{pages_.get()}}) {}

Slot ItemStore::Insert(Item&& item) {
  Slot slot = free_;
  if (slot != kNone) {
    free_ = record(slot).next_free;
  } else {
    if (used_ == kNone) return kNone;
    slot = static_cast<Slot>(used_);
    if (slot / kPageSlots == pages_->pages.size()) {
      pages_->pages.push_back(std::make_unique<Page>());
    }
    ++used_;
  }
  (*pages_)[slot] = item.key;
  Record& added = record(slot);
  added.trajectory = std::move(item.trajectory);
  added.priority = item.priority;
  if (last_inserted_at_ns_ < INT64_MAX) ++last_inserted_at_ns_;
  last_inserted_at_ns_ = std::max(last_inserted_at_ns_, absl::ToUnixNanos(item.inserted_at));
  added.inserted_at_ns = last_inserted_at_ns_;
  added.times_sampled = item.times_sampled;
  // Room enough that erasing leaves no tombstones, which would have the index rebuilt all the time.
  if (slots_.size() + 1 > slots_.capacity() / 8 * 5) slots_.reserve(slots_.capacity() + 1);
  slots_.insert(slot);
  return slot;
}

storage::TrajectoryPtr ItemStore::Erase(Slot slot) {
  Record& erased = record(slot);
  // Items that came one after another often go so: bring near what a later call will want.
  constexpr Slot kAhead = 8;
  if (const uint64_t ahead = uint64_t{slot} + kAhead; ahead < used_) {
    PrefetchIndex(key(static_cast<Slot>(ahead)));
    __builtin_prefetch(record(static_cast<Slot>(ahead)).trajectory.get());
  }
  slots_.erase(slot);
  erased.times_sampled = kFree;
  erased.next_free = free_;
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
