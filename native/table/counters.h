// What a table tells about the contents of its items: episodes and bytes.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "native/base/mutex.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::table {

// Episodes that have a live item, and those whose last item went. An item is of the episode of its
// first chunk; items without a trajectory are of none. Thread-compatible.
class EpisodeCounter {
 public:
  void Insert(const storage::TrajectoryPtr& trajectory);
  void Erase(const storage::TrajectoryPtr& trajectory);
  void Clear();
  void RestoreDeleted(int64_t deleted) { deleted_ = deleted; }

  int64_t live() const { return items_.size(); }
  int64_t deleted() const { return deleted_; }

 private:
  absl::flat_hash_map<uint64_t, int64_t> items_;  // Live items by episode.
  int64_t deleted_ = 0;
};

// Payload bytes of the distinct chunks (by key) of trajectories that were added and not removed.
//
// Thread-safe, with a lock of its own, so that a table counts after it has left its lock. A
// removal may then come before the addition that belongs to it: counts pass through negative
// numbers, and the sum is exact once both have come.
class ByteCounter {
 public:
  void Change(absl::Span<const storage::TrajectoryPtr> added,
              absl::Span<const storage::TrajectoryPtr> removed);
  int64_t bytes() const;

 private:
  void Count(const storage::Trajectory& trajectory, int64_t change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  absl::flat_hash_map<uint64_t, int64_t> references_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::table
