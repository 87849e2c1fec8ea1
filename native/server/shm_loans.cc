#include "native/server/shm_loans.h"

#include <string>
#include <utility>

#include "native/base/status.h"
#include "native/shm/encoding.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::server {

using shm::MessageType;

uint64_t Leases::Add(absl::Span<const table::SampledItem> items) {
  Trajectories trajectories;
  trajectories.reserve(items.size());
  for (const table::SampledItem& item : items) trajectories.push_back(item.item.trajectory);
  base::MutexLock lock(&mutex_);
  num_items_ += trajectories.size();
  leases_.emplace(++last_, std::move(trajectories));
  return last_;
}

void Leases::Release(absl::Span<const uint64_t> ids) {
  std::vector<Trajectories> released;  // Freed without the lock.
  base::MutexLock lock(&mutex_);
  for (uint64_t id : ids) {
    const auto found = leases_.find(id);
    if (found == leases_.end()) continue;
    num_items_ -= found->second.size();
    released.push_back(std::move(found->second));
    leases_.erase(found);
  }
}

size_t Leases::size() const {
  base::MutexLock lock(&mutex_);
  return leases_.size();
}

size_t Leases::num_items() const {
  base::MutexLock lock(&mutex_);
  return num_items_;
}

absl::Status SharedSegments::Share(const absl::flat_hash_set<uint32_t>& needed) {
  ForgetGone();
  for (uint32_t id : needed) {
    if (!shared_.contains(id)) GR_RETURN_IF_ERROR(ShareOne(id));
  }
  return absl::OkStatus();
}

absl::Status SharedSegments::ShareOne(uint32_t id) {
  for (const memory::SegmentView& segment : arena_.segments()) {
    if (segment.id != id) continue;
    if (segment.fd < 0) {
      return absl::ResourceExhaustedError("The memory of the items is not shareable.");
    }
    GR_ASSIGN_OR_RETURN(shm::UniqueFd fd, shm::OpenReadOnly(segment.fd));
    std::string body;
    shm::Encoder(&body).Put(id);
    if (!session_.Send(shm::MakeFrame(MessageType::kSegment, body), std::move(fd))) {
      return absl::ResourceExhaustedError("A descriptor could not be passed.");
    }
    shared_.insert(id);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("The items lie in another server's memory.");
}

void SharedSegments::ForgetGone() {
  const uint64_t version = arena_.segments_version();
  if (version == version_) return;
  version_ = version;
  absl::flat_hash_set<uint32_t> gone = shared_;
  for (const memory::SegmentView& segment : arena_.segments()) gone.erase(segment.id);
  if (gone.empty()) return;
  std::string body;
  for (uint32_t id : gone) {
    shm::Encoder(&body).Put(id);
    shared_.erase(id);
  }
  session_.Send(shm::MakeFrame(MessageType::kGone, body));
}

}  // namespace gear_reverb::server
