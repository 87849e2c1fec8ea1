#include "native/selectors/checked_selector.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "native/base/finite.h"
#include "native/base/status.h"

namespace gear_reverb::selectors {
namespace {

absl::Status CheckPriorities(absl::Span<const Slot> slots, absl::Span<const double> priorities,
                             const CheckedSelector& selector) {
  if (slots.size() != priorities.size()) {
    return base::InvalidArgument("Got ", slots.size(), " slots but ", priorities.size(),
                                 " priorities.");
  }
  if (base::AreFiniteNotNegative(priorities)) return absl::OkStatus();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (base::IsFiniteNotNegative(priorities[i])) continue;
    const bool takes_negative = TakesNegative(selector.options());
    if (!std::isfinite(priorities[i]) || !takes_negative) {
      return base::InvalidArgument("Priority must be finite",
                                   takes_negative ? "" : " and not negative", ", but slot ",
                                   slots[i], " got ", priorities[i], ".");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckedSelector::Insert(absl::Span<const Slot> slots,
                                     absl::Span<const double> priorities) {
  if (slots.empty() && priorities.empty()) return absl::OkStatus();
  GR_RETURN_IF_ERROR(CheckPriorities(slots, priorities, *this));
  const Slot last = *std::max_element(slots.begin(), slots.end());
  if (last == kNoSlot) return base::InvalidArgument("Slot ", last, " is reserved.");
  try {
    held_.Reserve(size_t{last} + 1);
    DoReserve(size_t{last} + 1, size() + slots.size());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("No memory for a selector of ", size_t{last} + 1, " slots."));
  }
  GR_RETURN_IF_ERROR(held_.Insert(slots));
  DoInsert(slots, priorities);
  return absl::OkStatus();
}

absl::Status CheckedSelector::Update(absl::Span<const Slot> slots,
                                     absl::Span<const double> priorities) {
  GR_RETURN_IF_ERROR(CheckPriorities(slots, priorities, *this));
  GR_RETURN_IF_ERROR(held_.CheckHeld(slots));
  DoUpdate(slots, priorities);
  return absl::OkStatus();
}

absl::Status CheckedSelector::Erase(absl::Span<const Slot> slots) {
  GR_RETURN_IF_ERROR(held_.Erase(slots));
  DoErase(slots);
  return absl::OkStatus();
}

absl::Status CheckedSelector::Replace(absl::Span<const Slot> slots,
                                      absl::Span<const double> priorities) {
  GR_RETURN_IF_ERROR(CheckPriorities(slots, priorities, *this));
  GR_RETURN_IF_ERROR(held_.CheckHeld(slots));
  DoReplace(slots, priorities);
  return absl::OkStatus();
}

absl::Status CheckedSelector::Sample(base::Philox& random, absl::Span<Draw> draws) const {
  if (size() == 0) return base::FailedPrecondition("Cannot sample from an empty selector.");
  DoSample(random, draws);
  return absl::OkStatus();
}

void CheckedSelector::Clear() {
  held_.Clear();
  DoClear();
}

}  // namespace gear_reverb::selectors
