// What a device tier, its thread and the holders of its copies share.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "native/base/mutex.h"
#include "native/device/device_heap.h"
#include "native/device/device_tier.h"
#include "native/device/tier_arrivals.h"
#include "native/device/tier_memory.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::device {

class TierState {
 public:
  // A slot's new trajectory, or null; for kAllSlots they all become null.
  struct Event {
    uint32_t slot;
    storage::TrajectoryPtr trajectory;
  };
  static constexpr uint32_t kAllSlots = UINT32_MAX;

  TierState(std::string table, std::shared_ptr<TierMemory> memory, const TierOptions& options)
      : memory_(std::move(memory)), retry_after_(options.retry_after) {
    stats.table = std::move(table);
    const uint64_t limit =
        options.limit_bytes > 0 ? options.limit_bytes : memory_->default_limit_bytes();
    stats.limit_bytes = limit;
  }
  // All copies have gone.
  ~TierState() {
    for (std::byte* const block : blocks_) memory_->Free(block);
  }

  // Null without room. Asks the device for another block where the limit leaves one.
  std::byte* Allocate(uint64_t bytes);
  void Free(std::byte* data, uint64_t bytes) {
    base::MutexLock lock(&mutex);
    heap_.Free(data, bytes);
    look_again = true;
    changed.NotifyAll();
  }
  TierMemory& memory() { return *memory_; }
  absl::Duration retry_after() const { return retry_after_; }
  void NoteFailure(const absl::Status& status) {
    base::MutexLock lock(&mutex);
    ++stats.failures;
    stats.last_error = std::string(status.message());
  }

  mutable base::Mutex mutex;  // Taken under the table's lock; takes no other.
  base::CondVar changed;
  std::vector<Event> events ABSL_GUARDED_BY(mutex);
  // By slot, once all events are taken.
  std::vector<const storage::Trajectory*> current ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<const std::byte*, DeviceCopyPtr> copies ABSL_GUARDED_BY(mutex);
  TierStats stats ABSL_GUARDED_BY(mutex);
  std::vector<std::weak_ptr<TierArrivals>> arrivals ABSL_GUARDED_BY(mutex);
  bool look_again ABSL_GUARDED_BY(mutex) = false;  // There may be room where there was none.
  bool settled ABSL_GUARDED_BY(mutex) = true;
  bool stopping ABSL_GUARDED_BY(mutex) = false;

 private:
  // The size of the block to ask for next, or 0.
  uint64_t NextBlock(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const std::shared_ptr<TierMemory> memory_;
  const absl::Duration retry_after_;
  DeviceHeap heap_ ABSL_GUARDED_BY(mutex);
  std::vector<std::byte*> blocks_ ABSL_GUARDED_BY(mutex);
  absl::Time not_before_ ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
};

}  // namespace gear_reverb::device
