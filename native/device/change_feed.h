// The changes of a table since they were last taken, as states of its slots, and if wanted what the
// items refer to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/mutex.h"
#include "native/device/select_types.h"
#include "native/table/extension.h"

namespace gear_reverb::device {

// What was taken.
struct TableChanges {
  bool reset = false;  // All items went before the rest.
  std::vector<SlotState> states;
  // By slot, of feeds that keep trajectories: those of items that came, or came to refer to
  // another, and are still there; null elsewhere.
  std::vector<storage::TrajectoryPtr> trajectories;
};

// Thread-safe. Holds 32 bytes a change, of at most 2^16 changes or, if that is more, twice as many
// as there are slots: only the last change of a slot matters. With trajectories, also a reference
// to those that were put in since, until their items go; 8 bytes a slot.
class ChangeFeed final : public table::Extension {
 public:
  // `by_insertion`: the order of a state is its item's time of insertion; else that of its last
  // insert or update.
  ChangeFeed(bool by_insertion, bool with_trajectories)
      : by_insertion_(by_insertion), with_trajectories_(with_trajectories) {}

  void OnInsert(const table::Item& item) override;
  void OnUpdate(const table::Item& item) override;
  void OnDelete(const table::Item& item) override;
  void OnReset() override;
  std::string DebugString() const override { return "ChangeFeed"; }

  // Replaces `changes` by those since the last call, in constant time. Its trajectories are null,
  // and their memory is used again.
  void Take(TableChanges* changes);

 private:
  void Add(const SlotState& state, const storage::TrajectoryPtr& trajectory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool by_insertion_, with_trajectories_;
  base::Mutex mutex_;  // Taken under the table's lock; takes no other.
  TableChanges changes_ ABSL_GUARDED_BY(mutex_);
  size_t slots_ ABSL_GUARDED_BY(mutex_) = 0;  // All slots so far are below.
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::device
