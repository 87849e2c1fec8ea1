// Which entries of a slot directory point to copies in the device's own memory, and which will when
// their columns have come there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "native/device/device_tier.h"
#include "native/device/tier_arrivals.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::device {

// Thread-compatible. 24 bytes a slot, 16 for every piece that has a copy, and about 30 for every
// column that has none.
class SlotCopies {
 public:
  // After more than `most_arrivals` between two calls of TakeArrived all that is missing is looked
  // up.
  explicit SlotCopies(std::shared_ptr<DeviceTier> tier, size_t most_arrivals = size_t{1} << 20);

  // The device's address of `data`, which lies in the column's bytes, for the slot's entry; null if
  // there is no copy of the column: then TakeArrived names the slot once there is.
  const std::byte* Find(uint32_t slot, const storage::ChunkColumn& column, const std::byte* data);
  // The slot's entry, which was made of `item`, is none any more. Appends the copies that it points
  // to, which have to be kept until the device has read them.
  void Forget(uint32_t slot, const storage::Trajectory& item, std::vector<DeviceCopyPtr>* copies);
  // Slots, each once, whose entries would have more copies if they were made anew.
  std::vector<uint32_t> TakeArrived();

  // Whether most of the pieces have copies.
  bool most() const { return num_copies_ > num_missing_; }

 private:
  const std::shared_ptr<DeviceTier> tier_;
  const std::shared_ptr<TierArrivals> arrivals_;
  std::vector<std::vector<DeviceCopyPtr>> copies_;  // By slot.
  // By the address of a column's bytes, the slots that would have its copy.
  absl::flat_hash_map<const std::byte*, absl::InlinedVector<uint32_t, 2>> missing_;
  size_t num_copies_ = 0, num_missing_ = 0;
};

}  // namespace gear_reverb::device
