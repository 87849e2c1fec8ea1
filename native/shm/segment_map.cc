#include "native/shm/segment_map.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "native/base/status.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::shm {

absl::StatusOr<std::shared_ptr<const MappedSegment>> MappedSegment::Map(const UniqueFd& fd) {
  GR_ASSIGN_OR_RETURN(const size_t bytes, SealedBytes(fd.get()));
  if (bytes == 0) return base::InvalidArgument("A segment is empty.");
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Cannot map a segment of ", bytes, " bytes: ", std::strerror(errno), "."));
  }
  return std::shared_ptr<const MappedSegment>(
      new MappedSegment(static_cast<const std::byte*>(base), bytes));
}

MappedSegment::~MappedSegment() { munmap(const_cast<std::byte*>(base_), bytes_); }

absl::Status SegmentMap::Add(uint32_t id, const UniqueFd& fd) {
  if (Find(id) != nullptr) return absl::OkStatus();
  GR_ASSIGN_OR_RETURN(auto segment, MappedSegment::Map(fd));
  base::MutexLock lock(&mutex_);
  segments_.emplace(id, std::move(segment));
  return absl::OkStatus();
}

std::shared_ptr<const MappedSegment> SegmentMap::Find(uint32_t id) const {
  base::MutexLock lock(&mutex_);
  const auto found = segments_.find(id);
  return found == segments_.end() ? nullptr : found->second;
}

std::vector<std::pair<uint32_t, std::shared_ptr<const MappedSegment>>> SegmentMap::All() const {
  base::MutexLock lock(&mutex_);
  return {segments_.begin(), segments_.end()};
}

void SegmentMap::Forget(uint32_t id) {
  std::shared_ptr<const MappedSegment> forgotten;  // Unmapped without the lock.
  base::MutexLock lock(&mutex_);
  const auto found = segments_.find(id);
  if (found == segments_.end()) return;
  forgotten = std::move(found->second);
  segments_.erase(found);
}

}  // namespace gear_reverb::shm
