// The items of a table: slots, a key → slot map, and the order of insertion.
//
// Keys lie in arrays of their own, since selection reads nothing else; the rest of an item is one
// record. Slots come in pages that never move, so growing copies nothing. About 56 bytes a slot
// and 17 to 34 bytes a map entry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "native/selectors/selector.h"
#include "native/table/item.h"

namespace gear_reverb::table {

using selectors::Slot;

// Thread-compatible. Slots of erased items are used again, the last one first.
class ItemStore {
 public:
  static constexpr Slot kNone = UINT32_MAX;

  struct Record {
    storage::TrajectoryPtr trajectory;
    double priority = 0;
    int64_t inserted_at_ns = 0;  // Since the Unix epoch.
    int32_t times_sampled = 0;
    Slot previous = kNone, next = kNone;  // By insertion; a free slot's `next` is the next free.
  };

  ItemStore() = default;
  ItemStore(ItemStore&&) = default;
  ItemStore& operator=(ItemStore&&) = default;

  // The new item's slot; kNone, with `item` as it was, if there is no slot left. The key is absent.
  Slot Insert(Item&& item);
  // Takes an item out; what it referred to is handed back, to be freed where that may take time.
  storage::TrajectoryPtr Erase(Slot slot);

  // kNone for an unknown key.
  Slot Find(uint64_t key) const {
    const auto found = slots_.find(key);
    return found == slots_.end() ? kNone : found->second;
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
    __builtin_prefetch(&page.keys[slot % kPageSlots]);
    __builtin_prefetch(&page.records[slot % kPageSlots]);
    __builtin_prefetch(&page.records[slot % kPageSlots].next);
  }
  int64_t size() const { return slots_.size(); }

  // By insertion: `for (Slot s = oldest(); s != kNone; s = record(s).next)`.
  Slot oldest() const { return oldest_; }

 private:
  static constexpr Slot kPageSlots = 1024;
  struct Page {
    uint64_t keys[kPageSlots];
    Record records[kPageSlots];
  };

  std::vector<std::unique_ptr<Page>> pages_;
  absl::flat_hash_map<uint64_t, Slot> slots_;
  uint64_t used_ = 0;  // Slots below were handed out at least once.
  Slot free_ = kNone;
  Slot oldest_ = kNone, newest_ = kNone;
};

}  // namespace gear_reverb::table
