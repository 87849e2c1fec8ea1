// Which slot has a key: a hash table of slots, whose keys are read where they lie.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/hash/hash.h"
#include "native/base/prefetch.h"
#include "native/selectors/huge_array.h"
#include "native/selectors/selector.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gear_reverb::table {

using selectors::Slot;

// Buckets of one cache line with room for twelve slots and a byte of each one's key, so that an
// absent key is mostly told, and a slot found again, without reading a key. A slot whose bucket is
// full goes to the next one with room; the full ones count those that went past them, so that
// searches know where to end and nothing is left behind by what goes. 7 to 15 bytes a slot.
//
// Four keys that follow each other, from a multiple of four on, share a bucket: a batch of such
// keys meets few cache lines.
//
// Thread-compatible.
class SlotIndex {
 public:
  static constexpr Slot kNone = UINT32_MAX;

  // The slot of `key`, or kNone; `key_of(slot)` reads a slot's key.
  template <typename KeyOf>
  Slot Find(uint64_t key, KeyOf key_of) const {
    if (size_ == 0) return kNone;
    const uint8_t tag = TagOf(key);
    size_t at = HomeOf(key);
    // Every bucket may have been passed by something once.
    for (size_t tries = 0; tries <= mask_; ++tries, at = (at + 1) & mask_) {
      const Bucket& bucket = buckets_[at];
      for (uint32_t found = bucket.Match(tag); found != 0; found &= found - 1) {
        const Slot slot = bucket.slots[std::countr_zero(found)];
        if (key_of(slot) == key) return slot;
      }
      if (bucket.passed == 0) break;
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
    for (size_t at = HomeOf(key);; at = (at + 1) & mask_) {
      Bucket& bucket = buckets_[at];
      for (uint32_t found = bucket.Match(tag); found != 0; found &= found - 1) {
        const int i = std::countr_zero(found);
        if (bucket.slots[i] != slot) continue;
        bucket.tags[i] = 0;
        --size_;
        return;
      }
      --bucket.passed;
    }
  }

  // Brings near where `key` is or would be.
  void Prefetch(uint64_t key) const {
    if (limit_ != 0) base::Prefetch(&buckets_[HomeOf(key)]);
  }
  size_t size() const { return size_; }

 private:
  static constexpr int kSlots = 12;
  static constexpr size_t kFirstBuckets = 16;

  struct alignas(64) Bucket {
    uint8_t tags[kSlots];  // 0: none is here.
    uint32_t passed;       // Slots that would be here, or passed by, and are further on.
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
  size_t HomeOf(uint64_t key) const { return absl::Hash<uint64_t>()(key / 4) & mask_; }

  void Add(uint64_t key, Slot slot) {
    for (size_t at = HomeOf(key);; at = (at + 1) & mask_) {
      Bucket& bucket = buckets_[at];
      if (const uint32_t free = bucket.Match(0); free != 0) {
        const int i = std::countr_zero(free);
        bucket.tags[i] = TagOf(key);
        bucket.slots[i] = slot;
        return;
      }
      ++bucket.passed;
    }
  }

  template <typename KeyOf>
  void Grow(KeyOf key_of) {
    SlotIndex grown;
    const size_t buckets = limit_ == 0 ? kFirstBuckets : 2 * (mask_ + 1);
    grown.buckets_.Reserve(buckets);
    grown.mask_ = buckets - 1;
    grown.limit_ = buckets * (kSlots * 3 / 4);
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

  selectors::HugeArray<Bucket> buckets_;
  size_t mask_ = 0;
  size_t size_ = 0;
  size_t limit_ = 0;  // Slots from which on it grows; 0: nothing is reserved.
};

}  // namespace gear_reverb::table
