// What one client holds of the server's memory: leases on chunks, and the segments they lie in.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "native/base/mutex.h"
#include "native/memory/arena.h"
#include "native/server/shm_session.h"
#include "native/table/item.h"

namespace gear_reverb::server {

// Thread-safe.
class Leases {
 public:
  // The lease's id. The items' chunks stay until it is released.
  uint64_t Add(absl::Span<const table::SampledItem> items);
  // Ids that are none are ignored.
  void Release(absl::Span<const uint64_t> ids);
  size_t size() const;
  // Of all leases, an item counted as often as it was lent.
  size_t num_items() const;

 private:
  using Trajectories = std::vector<storage::TrajectoryPtr>;

  mutable base::Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Trajectories> leases_ ABSL_GUARDED_BY(mutex_);
  size_t num_items_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Which of the arena's segments the client has. Used by one draw at a time.
class SharedSegments {
 public:
  SharedSegments(ShmSession* session, memory::Arena* arena) : session_(*session), arena_(*arena) {}

  // Sends those of `needed` that the client has not. RESOURCE_EXHAUSTED if one cannot be shared.
  absl::Status Share(const absl::flat_hash_set<uint32_t>& needed);

 private:
  absl::Status ShareOne(uint32_t id);
  void ForgetGone();

  ShmSession& session_;
  memory::Arena& arena_;
  absl::flat_hash_set<uint32_t> shared_;
  uint64_t version_ = 0;
};

}  // namespace gear_reverb::server
