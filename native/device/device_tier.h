// A table's columns in a device's memory: copies of the chunks that its items refer to.
//
// The arena keeps its own of everything: what is here is for gathers alone, and whatever cannot be
// here is gathered from there.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/base/mutex.h"
#include "native/device/device_heap.h"
#include "native/device/tier_memory.h"
#include "native/table/extension.h"

namespace gear_reverb::device {

struct TierOptions {
  uint64_t limit_bytes = 0;  // Of the device's memory, in blocks that are used or not; 0: the
                             // memory's default.
  // How long after the device had no memory it is asked again, and after a copy failed, the next
  // one is made.
  absl::Duration retry_after = absl::Seconds(10);
};

struct TierStats {
  std::string table;
  uint64_t limit_bytes = 0;
  uint64_t allocated_bytes = 0;  // Of the device.
  uint64_t resident_bytes = 0;   // Of columns that items of the table refer to, copied;
  uint64_t waiting_bytes = 0;    // on their way;
  uint64_t overflow_bytes = 0;   // and left where they were, for lack of room or after an error.
  int64_t failures = 0;          // Of the device: no memory, or a copy that failed.
  std::string last_error;        // Of these; "" if there were none.
};

class TierState;
class TierArrivals;

// A column of a chunk in the device's memory. It stays while somebody holds this.
class DeviceCopy {
 public:
  DeviceCopy(std::shared_ptr<TierState> state, std::byte* data, uint64_t bytes);
  ~DeviceCopy();
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;
  std::byte* data() const { return data_; }

 private:
  const std::shared_ptr<TierState> state_;
  std::byte* const data_;
  const uint64_t bytes_;
};
using DeviceCopyPtr = std::shared_ptr<const DeviceCopy>;

// An extension of the table, which owns it, and thread-safe. The table's calls queue 16 bytes each;
// a thread counts which columns are referred to, copies new ones, oldest first, and lets go of
// those that no item refers to any more. It holds on to items that have left the table until it has
// seen so, for the time of a copy of kPassBytes at most. On the host that takes 16 bytes per slot
// of the table and about 150 per column of a chunk.
//
// In a forked process it does nothing, and what it holds stays.
class DeviceTier final : public table::Extension {
 public:
  static constexpr uint64_t kPassBytes = uint64_t{32} << 20;

  DeviceTier(std::string table, std::shared_ptr<TierMemory> memory, TierOptions options);
  ~DeviceTier() override;

  void OnInsert(const table::Item& item) override;
  void OnUpdate(const table::Item& item) override;
  void OnDelete(const table::Item& item) override;
  void OnReset() override;
  std::string DebugString() const override { return "DeviceTier"; }

  // The copy of the chunk's column whose bytes start at `block`, which somebody holds; null if
  // there is none. All of its bytes are there.
  DeviceCopyPtr Find(const std::byte* block) const;
  // The same for many, as many as there are `copies`. A null block has none.
  void Find(absl::Span<const std::byte* const> blocks, absl::Span<DeviceCopyPtr> copies) const;

  // Is told of columns that come here from now on, and holds as many at most.
  std::shared_ptr<TierArrivals> NewArrivals(size_t most);

  TierStats stats() const;
  // See TierMemory.
  void UseSegments(std::weak_ptr<PinnedSegments> segments);

  // Waits until all changes so far have been looked at, and all that has room is copied.
  void WaitUntilSettled();

 private:
  class Worker;

  void Queue(uint32_t slot, storage::TrajectoryPtr trajectory);

  const uint64_t generation_;  // Of the process; see memory/fork_guard.h.
  std::shared_ptr<TierState> state_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace gear_reverb::device
