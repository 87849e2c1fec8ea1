// The changes of a table since they were last taken, as states of its slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/mutex.h"
#include "native/device/select_types.h"
#include "native/table/extension.h"

namespace gear_reverb::device {

// Thread-safe. Holds 32 bytes a change, of at most 2^16 changes or, if that is more, twice as many
// as there are slots: only the last change of a slot matters.
class ChangeFeed final : public table::Extension {
 public:
  // `by_insertion`: the order of a state is its item's time of insertion; else that of its last
  // insert or update.
  explicit ChangeFeed(bool by_insertion) : by_insertion_(by_insertion) {}

  void OnInsert(const table::Item& item) override;
  void OnUpdate(const table::Item& item) override;
  void OnDelete(const table::Item& item) override;
  void OnReset() override;
  std::string DebugString() const override { return "ChangeFeed"; }

  // Replaces `changes` by those since the last call. True if all items went before them.
  bool Take(std::vector<SlotState>* changes);

 private:
  void Add(const SlotState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool by_insertion_;
  base::Mutex mutex_;  // Taken under the table's lock; takes no other.
  std::vector<SlotState> changes_ ABSL_GUARDED_BY(mutex_);
  size_t slots_ ABSL_GUARDED_BY(mutex_) = 0;  // All slots so far are below.
  bool reset_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::device
