#include "native/client/shm_memory.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/base/status.h"

namespace gear_reverb::client {
namespace {

// A server on this host answers at once, unless it is very busy.
constexpr absl::Duration kKeepTimeout = absl::Seconds(10);

class ShmMemory final : public device::SegmentSource {
 public:
  explicit ShmMemory(std::shared_ptr<ShmPeer> peer) : peer_(std::move(peer)) {}

  const void* memory() const override { return peer_.get(); }
  bool read_only() const override { return true; }

  absl::Status Keep() override {
    const absl::Time deadline = absl::Now() + kKeepTimeout;
    GR_ASSIGN_OR_RETURN(const auto control, ShmControl::Open(peer_, deadline));
    return control->KeepMemory(deadline);
  }

  std::vector<memory::SegmentView> segments() const override {
    base::MutexLock lock(&mutex_);
    std::vector<memory::SegmentView> views;
    for (auto& [id, segment] : peer_->segments.All()) {
      // It is registered for reading, whatever the pointer says.
      views.push_back({id, -1, const_cast<std::byte*>(segment->base()), segment->bytes()});
      told_.emplace(id, std::move(segment));
    }
    return views;
  }

 private:
  const std::shared_ptr<ShmPeer> peer_;
  mutable base::Mutex mutex_;
  mutable absl::flat_hash_map<uint32_t, std::shared_ptr<const shm::MappedSegment>> told_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<device::SegmentSource> NewShmMemory(std::shared_ptr<ShmPeer> peer) {
  return std::make_shared<ShmMemory>(std::move(peer));
}

}  // namespace gear_reverb::client
