// The set of slots that a selector holds, one bit per slot.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "native/base/huge_array.h"
#include "native/selectors/selector.h"

namespace gear_reverb::selectors {

// Batches are all or nothing: an error leaves the set as it was.
class SlotSet {
 public:
  // Room for slots below `count`.
  void Reserve(size_t count) { words_.Reserve((count + 63) / 64); }

  // ALREADY_EXISTS if a slot is held or comes twice. All slots must have been reserved.
  absl::Status Insert(absl::Span<const Slot> slots);
  // NOT_FOUND if a slot is not held or comes twice.
  absl::Status Erase(absl::Span<const Slot> slots);
  // NOT_FOUND unless every slot is held; slots may repeat.
  absl::Status CheckHeld(absl::Span<const Slot> slots) const;

  bool Contains(Slot slot) const {
    return slot / 64 < words_.capacity() && (words_[slot / 64] >> (slot % 64) & 1) != 0;
  }
  size_t size() const { return size_; }
  void Clear();

 private:
  void Flip(Slot slot) { words_[slot / 64] ^= uint64_t{1} << (slot % 64); }

  base::HugeArray<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace gear_reverb::selectors
