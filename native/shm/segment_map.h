// A server's segments, as a client has mapped them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/shm/unique_fd.h"

namespace gear_reverb::shm {

// A read-only mapping; immutable. Its bytes are the server's to change.
class MappedSegment {
 public:
  // INVALID_ARGUMENT for memory whose size is not sealed, RESOURCE_EXHAUSTED without addresses.
  static absl::StatusOr<std::shared_ptr<const MappedSegment>> Map(const UniqueFd& fd);
  ~MappedSegment();
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  const std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  // Null unless all of [offset, offset + bytes) lies inside.
  const std::byte* At(uint64_t offset, uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? base_ + offset : nullptr;
  }

 private:
  MappedSegment(const std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}

  const std::byte* const base_;
  const size_t bytes_;
};

// Thread-safe.
class SegmentMap {
 public:
  // Errors of MappedSegment::Map. A segment that is known already is left as it is.
  absl::Status Add(uint32_t id, const UniqueFd& fd);
  // Null for an unknown segment.
  std::shared_ptr<const MappedSegment> Find(uint32_t id) const;
  // With their ids, in no order.
  std::vector<std::pair<uint32_t, std::shared_ptr<const MappedSegment>>> All() const;
  // It stays mapped until the last that uses it has gone.
  void Forget(uint32_t id);

 private:
  mutable base::Mutex mutex_;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const MappedSegment>> segments_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::shm
