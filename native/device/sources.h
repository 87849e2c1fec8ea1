// Where a device finds the bytes of a gather: in its own memory, in memory that is registered with
// it, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "native/device/device_tier.h"
#include "native/device/gather_plan.h"
#include "native/device/pinned_segments.h"

namespace gear_reverb::device {

// Either may be null. Const calls are thread-safe.
class Sources {
 public:
  explicit Sources(std::shared_ptr<DeviceTier> tier = nullptr,
                   std::shared_ptr<PinnedSegments> segments = nullptr)
      : tier_(std::move(tier)), segments_(std::move(segments)) {}

  enum class Place { kDevice, kRegistered, kNone };
  struct Found {
    Place place = Place::kNone;
    const std::byte* data = nullptr;  // The device's address; null for kNone.
    DeviceCopyPtr copy;               // Of kDevice: to be kept until the bytes have been read.
  };
  // Of [data, data + bytes), in the memory block (a chunk's column) that starts at `block`, which
  // the caller keeps; a null block is none.
  Found Find(const std::byte* block, const std::byte* data, uint64_t bytes) const;

  // What a plan becomes.
  struct Resolved {
    std::vector<DeviceCopyPtr> copies;  // To be kept until the gather has ended.
    std::vector<size_t> not_found;      // Pieces that are still at the process's addresses.
    uint64_t device_bytes = 0;          // Of pieces in the device's memory.
  };
  // Gives the plan's pieces the device's addresses where there are any.
  Resolved Resolve(GatherPlan* plan) const;

 private:
  std::shared_ptr<DeviceTier> tier_;
  std::shared_ptr<PinnedSegments> segments_;
};

}  // namespace gear_reverb::device
