// What a table tells about the contents of its items: episodes and bytes.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "native/base/mutex.h"
#include "native/storage/trajectory.h"
#include "native/table/item.h"

namespace gear_reverb::table {

// Episodes that have a live item, and those whose last item went. An item is of the episode of its
// first chunk; items without a trajectory are of none. Thread-compatible.
class EpisodeCounter {
 public:
  // `items` of one trajectory, which may be null.
  void Insert(const storage::Trajectory* trajectory, int64_t items = 1);
  void Erase(const storage::Trajectory* trajectory, int64_t items = 1);
  // Then so many episodes more are counted without more memory; may throw std::bad_alloc.
  void Reserve(int64_t more);
  void Clear();
  void RestoreDeleted(int64_t deleted) { deleted_ = deleted; }

  int64_t live() const { return items_.size(); }
  int64_t deleted() const { return deleted_; }

 private:
  // The count of the episode last seen, which the next item often is of.
  struct Last {
    uint64_t episode = 0;
    int64_t* count = nullptr;  // Null: none.
  };

  absl::flat_hash_map<uint64_t, int64_t> items_;  // Live items by episode.
  Last inserted_, erased_;
  int64_t deleted_ = 0;
};

// Payload bytes of the distinct chunks of trajectories that were added and not removed.
//
// Thread-safe, with a lock of its own, so that a table counts after it has left its lock. A
// removal may then come before the addition that belongs to it: counts pass through negative
// numbers, and the sum is exact once both have come.
//
// The first counter to meet a chunk counts in the chunk itself, until the count is 0 again; others
// keep the count in a map.
class ByteCounter {
 public:
  ByteCounter();
  void Change(absl::Span<const storage::TrajectoryPtr> added,
              absl::Span<const storage::TrajectoryPtr> removed);
  // `change`: 1 for items added, -1 for items removed.
  void Change(absl::Span<const Item> items, int64_t change);
  int64_t bytes() const;

 private:
  // Collects changes of one chunk that follow each other, as those of a batch of items do.
  class Run;
  void Count(const storage::Chunk& chunk, int64_t change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds to the chunk's count, and returns what it was before.
  int64_t Add(const storage::Chunk& chunk, int64_t change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Who counts in a chunk; 0: not this counter.
  const uint64_t id_;
  mutable base::Mutex mutex_;
  absl::flat_hash_map<const storage::Chunk*, int64_t> references_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::table
