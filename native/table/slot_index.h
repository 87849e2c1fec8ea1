// Which slot has a key: a hash table of slots, whose keys are read where they lie.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "native/base/huge_array.h"
#include "native/base/prefetch.h"
#include "native/selectors/selector.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gear_reverb::table {

using selectors::Slot;

// Buckets of one cache line with room for twelve slots and a byte of each one's key, so that an
// absent key is mostly told, and a slot found again, without reading a key. A slot whose bucket is
// full goes to another with room, by double hashing; the full ones count those that went past them,
// in four lanes, so that searches know where to end and little is left behind by what goes. 7 to
// 15 bytes a slot, or 11 to 21 spread out.
//
// Two keys that follow each other, from an even one on, are neighbours, and share their buckets: a
// batch of such keys meets half as many cache lines, and searches for both at once.
//
// Thread-compatible.
class SlotIndex {
 public:
  static constexpr Slot kNone = UINT32_MAX;

  // The slot of `key`, or kNone; `key_of(slot)` reads a slot's key.
  template <typename KeyOf>
  Slot Find(uint64_t key, KeyOf key_of) const {
    return FindAny({&key, 1}, key_of);
  }

  static constexpr size_t kNeighbours = 2;  // More would have buckets overflow more often.
  static bool AreNeighbours(uint64_t a, uint64_t b) { return a / kNeighbours == b / kNeighbours; }
  // The slot of one of `keys`, at least one, and neighbours, or kNone.
  template <typename KeyOf>
  Slot FindAny(absl::Span<const uint64_t> keys, KeyOf key_of) const {
    if (size_ == 0) return kNone;
    Path path = PathOf(keys[0]);
    // Every bucket may have been passed by something once.
    for (size_t tries = 0; tries <= mask_; ++tries, path.Advance()) {
      const Bucket& bucket = buckets_[path.at];
      for (const uint64_t key : keys) {
        for (uint32_t found = bucket.Match(TagOf(key)); found != 0; found &= found - 1) {
          const Slot slot = bucket.slots[std::countr_zero(found)];
          if (key_of(slot) == key) return slot;
        }
      }
      if (bucket.passed[path.lane] == 0) break;
    }
    return kNone;
  }

  // `key` must be absent. Throws std::bad_alloc, with nothing changed, if there is no memory.
  template <typename KeyOf>
  void Insert(uint64_t key, Slot slot, KeyOf key_of) {
    if (size_ + 1 > limit_) Grow(key_of);
    Add(key, slot);
    ++size_;
  }

  // `slot` must be there under `key`.
  void Erase(uint64_t key, Slot slot) {
    const uint8_t tag = TagOf(key);
    for (Path path = PathOf(key);; path.Advance()) {
      Bucket& bucket = buckets_[path.at];
      for (uint32_t found = bucket.Match(tag); found != 0; found &= found - 1) {
        const int i = std::countr_zero(found);
        if (bucket.slots[i] != slot) continue;
        bucket.tags[i] = 0;
        --size_;
        return;
      }
      if (bucket.passed[path.lane] != kMany) --bucket.passed[path.lane];
    }
  }

  // Brings near where `key` and its neighbours are or would be: the first bucket, and, once that
  // and those before are near, the one after `passed` full ones.
  void Prefetch(uint64_t key, int passed = 0) const {
    if (limit_ == 0) return;
    Path path = PathOf(key);
    for (; passed > 0 && buckets_[path.at].passed[path.lane] != 0; --passed) path.Advance();
    if (passed == 0) base::Prefetch(&buckets_[path.at]);
  }
  size_t size() const { return size_; }

  // From the next growth on, half of the room is left free at least, not a quarter: neighbours that
  // come and go by the thousands then hardly ever meet a full bucket.
  void SpreadOut() { roomy_ = true; }

 private:
  static constexpr int kSlots = 12;
  static constexpr int kLanes = 4;
  static constexpr uint8_t kMany = 255;
  static constexpr size_t kFirstBuckets = 16;

  struct alignas(64) Bucket {
    uint8_t tags[kSlots];  // 0: none is here.
    // Slots that would be here, or passed by, and are further on, by lane; a full count stays.
    uint8_t passed[kLanes];
    Slot slots[kSlots];

    // A bit for each slot that has the tag.
    uint32_t Match(uint8_t tag) const {
#if defined(__SSE2__)
      const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
      const __m128i same = _mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)));
      return static_cast<uint32_t>(_mm_movemask_epi8(same)) & ((1u << kSlots) - 1);
#else
      uint32_t same = 0;
      for (int i = 0; i < kSlots; ++i) same |= uint32_t{tags[i] == tag} << i;
      return same;
#endif
    }
  };
  static_assert(sizeof(Bucket) == 64);

  static uint8_t TagOf(uint64_t key) {
    const auto tag = static_cast<uint8_t>(key * 0x9e3779b97f4a7c15 >> 56);
    return tag == 0 ? 1 : tag;
  }
  // The buckets where a key may be, each once, the first ones most likely.
  struct Path {
    size_t at;
    size_t step;  // Odd: of their number, a power of two, that meets all.
    size_t mask;
    int lane;  // What it has in common with a quarter of all keys.
    void Advance() { at = (at + step) & mask; }
  };
  Path PathOf(uint64_t key) const {
    const uint64_t hash = absl::Hash<uint64_t>()(key / kNeighbours);
    return {hash & mask_, hash >> 32 | 1, mask_, static_cast<int>(hash >> 62)};
  }

  void Add(uint64_t key, Slot slot) {
    for (Path path = PathOf(key);; path.Advance()) {
      Bucket& bucket = buckets_[path.at];
      if (const uint32_t free = bucket.Match(0); free != 0) {
        const int i = std::countr_zero(free);
        bucket.tags[i] = TagOf(key);
        bucket.slots[i] = slot;
        return;
      }
      if (bucket.passed[path.lane] != kMany) ++bucket.passed[path.lane];
    }
  }

  template <typename KeyOf>
  void Grow(KeyOf key_of) {
    SlotIndex grown;
    const size_t buckets = limit_ == 0 ? kFirstBuckets : 2 * (mask_ + 1);
    grown.buckets_.Reserve(buckets);
    grown.mask_ = buckets - 1;
    grown.roomy_ = roomy_;
    grown.limit_ = buckets * (roomy_ ? kSlots / 2 : kSlots * 3 / 4);
    if (limit_ != 0) {
      for (size_t at = 0; at <= mask_; ++at) {
        for (int i = 0; i < kSlots; ++i) {
          const Slot slot = buckets_[at].slots[i];
          if (buckets_[at].tags[i] != 0) grown.Add(key_of(slot), slot);
        }
      }
    }
    grown.size_ = size_;
    *this = std::move(grown);
  }

  base::HugeArray<Bucket> buckets_;
  size_t mask_ = 0;
  size_t size_ = 0;
  size_t limit_ = 0;  // Slots from which on it grows; 0: nothing is reserved.
  bool roomy_ = false;
};

}  // namespace gear_reverb::table
