// The items of a table: slots, and an index of them by key.
//
// Keys lie in an array of their own, since selection reads nothing else; the rest of an item is one
// record of half a cache line. 40 bytes a slot and 7 to 21 in the index.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "native/base/huge_array.h"
#include "native/base/prefetch.h"
#include "native/table/item.h"
#include "native/table/slot_index.h"

namespace gear_reverb::table {

// Thread-compatible. Slots of erased items are used again, the last one first.
class ItemStore {
 public:
  static constexpr Slot kNone = SlotIndex::kNone;

  struct Record {
    static constexpr bool kMovesAsBytes = true;  // As its only pointer does.
    storage::TrajectoryPtr trajectory;
    double priority = 0;
    int64_t inserted_at_ns = 0;  // Since the Unix epoch; tells the order of insertion.
    int32_t times_sampled = 0;   // kFree: none is here.
    union {
      uint32_t row = 0;  // Item::row,
      Slot next_free;    // or, if none is here, where none is either.
    };
  };
  static_assert(sizeof(Record) == 32);

  ItemStore() = default;
  ItemStore(ItemStore&& other) noexcept { *this = std::move(other); }
  ItemStore& operator=(ItemStore&& other) noexcept;
  ~ItemStore();

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
  // Whether a key of `keys`, at least one, and SlotIndex's neighbours, is here.
  bool ContainsAny(absl::Span<const uint64_t> keys) const {
    return index_.FindAny(keys, [this](Slot slot) { return this->key(slot); }) != kNone;
  }
  uint64_t key(Slot slot) const { return keys_[slot]; }
  Record& record(Slot slot) { return records_[slot]; }
  const Record& record(Slot slot) const { return records_[slot]; }
  Item Get(Slot slot) const;  // Not settled.
  void Settle(Slot slot);
  // Brings the slot's memory near.
  void Prefetch(Slot slot) const {
    base::Prefetch(&records_[slot]);
    base::Prefetch(&keys_[slot]);
  }
  // Brings near what else erasing the slot's item will want; the slot's memory should be.
  void PrefetchErase(Slot slot) const {
    index_.Prefetch(key(slot));
    base::Prefetch(record(slot).trajectory.get());
  }
  // Brings that part of the index near where `key` is or would be; see SlotIndex.
  void PrefetchIndex(uint64_t key, int passed) const { index_.Prefetch(key, passed); }
  int64_t size() const { return static_cast<int64_t>(index_.size()); }
  // Items will come many at a time, which is to be fast.
  void ExpectMany() { index_.SpreadOut(); }

  // Calls visit(slot) for every item, by slot; not in the order of insertion.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint64_t slot = 0; slot < used_; ++slot) {
      if (record(static_cast<Slot>(slot)).times_sampled != kFree) visit(static_cast<Slot>(slot));
    }
  }

 private:
  static constexpr int32_t kFree = -1;

  // The slot's key and record become the item's.
  void Fill(Slot slot, Item&& item);
  void AddToIndex(uint64_t key, Slot slot) {
    index_.Insert(key, slot, [this](Slot of) { return this->key(of); });
  }

  base::HugeArray<uint64_t> keys_;
  base::HugeArray<Record> records_;  // Those of slots handed out live.
  SlotIndex index_;
  uint64_t used_ = 0;  // Slots below were handed out at least once.
  Slot free_ = kNone;
  int64_t last_inserted_at_ns_ = INT64_MIN;
  absl::Time last_time_ = absl::InfinitePast();  // As the last item had it.
};

}  // namespace gear_reverb::table
