// The items of a table: slots, and an index of them by key.
//
// Keys lie in arrays of their own, since selection reads nothing else; the rest of an item is one
// record of half a cache line. Slots come in pages that never move, so growing copies nothing.
// 40 bytes a slot and 8 to 16 bytes an index entry.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
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
    int64_t inserted_at_ns = 0;  // Since the Unix epoch; tells the order of insertion.
    int32_t times_sampled = 0;   // kFree: none is here.
    Slot next_free = kNone;
  };
  static_assert(sizeof(Record) == 32);

  ItemStore();
  ItemStore(ItemStore&&) = default;
  ItemStore& operator=(ItemStore&&) = default;

  // The new item's slot; kNone, with `item` as it was, if there is no slot left. The key is absent.
  // The time of insertion becomes later than that of all items before, if it is not.
  Slot Insert(Item&& item);
  // Takes an item out; what it referred to is handed back, to be freed where that may take time.
  storage::TrajectoryPtr Erase(Slot slot);

  // kNone for an unknown key.
  Slot Find(uint64_t key) const {
    const auto found = slots_.find(Key{key});
    return found == slots_.end() ? kNone : *found;
  }
  uint64_t key(Slot slot) const { return (*pages_)[slot]; }
  Record& record(Slot slot) { return pages_->record(slot); }
  const Record& record(Slot slot) const { return pages_->record(slot); }
  Item Get(Slot slot) const;
  // Brings the slot's memory near.
  void Prefetch(Slot slot) const {
    __builtin_prefetch(&pages_->record(slot));
    __builtin_prefetch(&(*pages_)[slot]);
  }
  // Brings that part of the index near where `key` is or would be.
  void PrefetchIndex(uint64_t key) const { slots_.prefetch(Key{key}); }
  int64_t size() const { return slots_.size(); }

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
  // Stays where it is when the store moves, since the index refers to it.
  struct Pages {
    std::vector<std::unique_ptr<Page>> pages;

    uint64_t& operator[](Slot slot) const {
      return pages[slot / kPageSlots]->keys[slot % kPageSlots];
    }
    Record& record(Slot slot) const { return pages[slot / kPageSlots]->records[slot % kPageSlots]; }
  };

  // The index holds slots only; their keys are read where they lie.
  struct Key {
    uint64_t value;
  };
  struct KeyOf {
    using is_transparent = void;
    const Pages* pages;

    uint64_t Of(Slot slot) const { return (*pages)[slot]; }
    uint64_t Of(Key key) const { return key.value; }
  };
  // Eight keys that follow each other begin their search at one place, so that a batch of such keys
  // meets few cache lines. The low seven bits, which tell the keys at one place apart, are a key's
  // own.
  struct Hash : KeyOf {
    template <typename T>
    size_t operator()(T of) const {
      const uint64_t key = this->Of(of);
      return (absl::Hash<uint64_t>()(key / 8) & ~size_t{127}) | (key * 0x9e3779b97f4a7c15 >> 57);
    }
  };
  struct Equal : KeyOf {
    bool operator()(Slot a, Slot b) const { return a == b; }
    template <typename A, typename B>
    bool operator()(A a, B b) const {
      return this->Of(a) == this->Of(b);
    }
  };

  std::unique_ptr<Pages> pages_;
  absl::flat_hash_set<Slot, Hash, Equal> slots_;
  uint64_t used_ = 0;  // Slots below were handed out at least once.
  Slot free_ = kNone;
  int64_t last_inserted_at_ns_ = INT64_MIN;
};

}  // namespace gear_reverb::table
