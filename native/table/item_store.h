// The items of a table: slots, and an index of them by key.
//
// Keys lie in arrays of their own, since selection reads nothing else; the rest of an item is one
// record of half a cache line. Slots come in pages that never move, so growing copies nothing.
// 40 bytes a slot and 7 to 15 in the index.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/base/prefetch.h"
#include "native/table/item.h"
#include "native/table/slot_index.h"

namespace gear_reverb::table {

// Thread-compatible. Slots of erased items are used again, the last one first.
class ItemStore {
 public:
  static constexpr Slot kNone = SlotIndex::kNone;

  struct Record {
    storage::TrajectoryPtr trajectory;
    double priority = 0;
    int64_t inserted_at_ns = 0;  // Since the Unix epoch; tells the order of insertion.
    int32_t times_sampled = 0;   // kFree: none is here.
    Slot next_free = kNone;
  };
  static_assert(sizeof(Record) == 32);

  // The new item's slot; kNone, with `item` as it was, if there is no slot, or no memory, left. The
  // key is absent.
  // The time of insertion becomes later than that of all items before, if it is not.
  Slot Insert(Item&& item);
  // Takes an item out; what it referred to is handed back, to be freed where that may take time.
  storage::TrajectoryPtr Erase(Slot slot);
  // Both in one: the new item has the slot of the old one.
  storage::TrajectoryPtr Replace(Slot slot, Item&& item);

  // kNone for an unknown key.
  Slot Find(uint64_t key) const {
    return index_.Find(key, [this](Slot slot) { return this->key(slot); });
  }
  uint64_t key(Slot slot) const { return pages_[slot / kPageSlots]->keys[slot % kPageSlots]; }
  Record& record(Slot slot) { return pages_[slot / kPageSlots]->records[slot % kPageSlots]; }
  const Record& record(Slot slot) const {
    return pages_[slot / kPageSlots]->records[slot % kPageSlots];
  }
  Item Get(Slot slot) const;
  // Brings the slot's memory near.
  void Prefetch(Slot slot) const {
    const Page& page = *pages_[slot / kPageSlots];
    base::Prefetch(&page.records[slot % kPageSlots]);
    base::Prefetch(&page.keys[slot % kPageSlots]);
  }
  // Brings near what else erasing the slot's item will want; the slot's memory should be.
  void PrefetchErase(Slot slot) const {
    index_.Prefetch(key(slot));
    base::Prefetch(record(slot).trajectory.get());
  }
  // Brings that part of the index near where `key` is or would be.
  void PrefetchIndex(uint64_t key) const { index_.Prefetch(key); }
  int64_t size() const { return static_cast<int64_t>(index_.size()); }

  // Calls visit(slot) for every item, by slot; not in the order of insertion.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint64_t slot = 0; slot < used_; ++slot) {
      if (record(static_cast<Slot>(slot)).times_sampled != kFree) visit(static_cast<Slot>(slot));
    }
  }

 private:
  static constexpr Slot kPageSlots = 1024;
  static constexpr int32_t kFree = -1;

  struct Page {
    uint64_t keys[kPageSlots];
    Record records[kPageSlots];
  };
  // The slot's key and record become the item's.
  void Fill(Slot slot, Item&& item);
  void AddToIndex(uint64_t key, Slot slot) {
    index_.Insert(key, slot, [this](Slot of) { return this->key(of); });
  }

  std::vector<std::unique_ptr<Page>> pages_;
  SlotIndex index_;
  uint64_t used_ = 0;  // Slots below were handed out at least once.
  Slot free_ = kNone;
  int64_t last_inserted_at_ns_ = INT64_MIN;
};

}  // namespace gear_reverb::table
