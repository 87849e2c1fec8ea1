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

// Called under the table's lock, which still refers to what an item refers to or did so far:
// letting go of a trajectory frees nothing here.
void ChangeFeed::Add(const SlotState& state, const storage::TrajectoryPtr& trajectory) {
  changes_.states.push_back(state);
  slots_ = std::max(slots_, size_t{state.slot} + 1);
  if (changes_.states.size() >= std::max(kFewChanges, 2 * slots_)) {
    Compact(changes_.states, slots_);
  }
  if (!with_trajectories_) return;
  if (changes_.trajectories.size() < slots_) changes_.trajectories.resize(slots_);
  changes_.trajectories[state.slot] = trajectory;
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
  Add(state, item.trajectory);
}

void ChangeFeed::OnDelete(const table::Item& item) {
  SlotState state;
  state.slot = item.slot;
  base::MutexLock lock(&mutex_);
  Add(state, nullptr);
}

void ChangeFeed::OnReset() {
  base::MutexLock lock(&mutex_);
  changes_.states.clear();
  changes_.trajectories.clear();
  changes_.reset = true;
}

void ChangeFeed::Take(TableChanges* changes) {
  changes->reset = false;
  changes->states.clear();
  base::MutexLock lock(&mutex_);
  std::swap(changes_, *changes);
}

}  // namespace gear_reverb::device
