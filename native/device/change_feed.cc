#include "native/device/change_feed.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace gear_reverb::device {
namespace {

constexpr size_t kFewChanges = size_t{1} << 16;

// Drops all but the last state of every slot; slots are below `slots`.
void Compact(std::vector<SlotState>& changes, size_t slots) {
  std::vector<bool> seen(slots);
  auto kept = changes.end();
  for (auto it = changes.end(); it != changes.begin();) {
    --it;
    if (!seen[it->slot]) *--kept = *it;
    seen[it->slot] = true;
  }
  changes.erase(changes.begin(), kept);
}

}  // namespace

void ChangeFeed::Add(const SlotState& state) {
  changes_.push_back(state);
  slots_ = std::max(slots_, size_t{state.slot} + 1);
  if (changes_.size() >= std::max(kFewChanges, 2 * slots_)) Compact(changes_, slots_);
}

void ChangeFeed::OnInsert(const table::Item& item) { OnUpdate(item); }

void ChangeFeed::OnUpdate(const table::Item& item) {
  SlotState state;
  state.key = item.key;
  state.priority = item.priority;
  state.slot = item.slot;
  state.held = 1;
  base::MutexLock lock(&mutex_);
  // Signed nanoseconds, in an order of unsigned numbers.
  const uint64_t inserted_at = static_cast<uint64_t>(absl::ToUnixNanos(item.inserted_at));
  state.order = by_insertion_ ? inserted_at ^ (uint64_t{1} << 63) : clock_++;
  Add(state);
}

void ChangeFeed::OnDelete(const table::Item& item) {
  SlotState state;
  state.slot = item.slot;
  base::MutexLock lock(&mutex_);
  Add(state);
}

void ChangeFeed::OnReset() {
  base::MutexLock lock(&mutex_);
  changes_.clear();
  reset_ = true;
}

bool ChangeFeed::Take(std::vector<SlotState>* changes) {
  changes->clear();
  base::MutexLock lock(&mutex_);
  changes_.swap(*changes);
  return std::exchange(reset_, false);
}

}  // namespace gear_reverb::device
