#include "native/selectors/slot_set.h"

#include "absl/strings/str_cat.h"
#include "native/base/status.h"

namespace gear_reverb::selectors {

absl::Status SlotSet::Insert(absl::Span<const Slot> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (Contains(slots[i])) {
      const Slot slot = slots[i];
      while (i > 0) Flip(slots[--i]);
      return absl::AlreadyExistsError(absl::StrCat("Slot ", slot, " is already in the selector."));
    }
    Flip(slots[i]);
  }
  size_ += slots.size();
  return absl::OkStatus();
}

absl::Status SlotSet::Erase(absl::Span<const Slot> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!Contains(slots[i])) {
      const Slot slot = slots[i];
      while (i > 0) Flip(slots[--i]);
      return base::NotFound("Slot ", slot, " is not in the selector.");
    }
    Flip(slots[i]);
  }
  size_ -= slots.size();
  return absl::OkStatus();
}

absl::Status SlotSet::CheckHeld(absl::Span<const Slot> slots) const {
  for (const Slot slot : slots) {
    if (!Contains(slot)) return base::NotFound("Slot ", slot, " is not in the selector.");
  }
  return absl::OkStatus();
}

void SlotSet::Clear() {
  words_.Clear();
  size_ = 0;
}

}  // namespace gear_reverb::selectors
