#include "native/device/tier_state.h"

#include "absl/time/clock.h"

namespace gear_reverb::device {
namespace {

constexpr uint64_t kFirstBlockBytes = uint64_t{64} << 20;
// Where the device has not as much as was asked for, half is asked for, down to this.
constexpr uint64_t kLeastBlockBytes = uint64_t{4} << 20;

}  // namespace

uint64_t TierState::NextBlock(uint64_t bytes) {
  const uint64_t limit = stats.limit_bytes / DeviceHeap::kAlignment * DeviceHeap::kAlignment;
  const uint64_t left = limit - heap_.capacity_bytes();
  bytes = DeviceHeap::RoundUp(bytes);
  if (bytes > left || absl::Now() < not_before_) return 0;
  // As much as there is already: few blocks, and never many times what is needed.
  return std::min(left, std::max({bytes, kFirstBlockBytes, heap_.capacity_bytes()}));
}

std::byte* TierState::Allocate(uint64_t bytes) {
  uint64_t block_bytes;
  {
    base::MutexLock lock(&mutex);
    if (std::byte* const data = heap_.Allocate(bytes)) return data;
    block_bytes = NextBlock(bytes);
  }
  if (block_bytes == 0) return nullptr;
  absl::StatusOr<std::byte*> block = memory_->Allocate(block_bytes);
  const uint64_t least = std::max(DeviceHeap::RoundUp(bytes), kLeastBlockBytes);
  while (!block.ok() && block_bytes / 2 >= least) {
    block_bytes = block_bytes / 2 / DeviceHeap::kAlignment * DeviceHeap::kAlignment;
    if (block_bytes < DeviceHeap::RoundUp(bytes)) break;
    NoteFailure(block.status());
    block = memory_->Allocate(block_bytes);
  }
  if (!block.ok()) {
    NoteFailure(block.status());
    base::MutexLock lock(&mutex);
    not_before_ = absl::Now() + retry_after_;
    return nullptr;
  }
  base::MutexLock lock(&mutex);
  blocks_.push_back(*block);
  heap_.AddBlock(*block, block_bytes);
  stats.allocated_bytes = heap_.capacity_bytes();
  return heap_.Allocate(bytes);
}

}  // namespace gear_reverb::device
