#include "native/device/slot_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gear_reverb::device {

SlotCopies::SlotCopies(std::shared_ptr<DeviceTier> tier, size_t most_arrivals)
    : tier_(std::move(tier)), arrivals_(tier_->NewArrivals(most_arrivals)) {}

const std::byte* SlotCopies::Find(uint32_t slot, const storage::ChunkColumn& column,
                                  const std::byte* data) {
  const std::byte* const block = column.data.data();
  if (slot >= copies_.size()) copies_.resize(slot + size_t{1});
  DeviceCopyPtr copy = tier_->Find(block);
  if (copy == nullptr) {
    missing_[block].push_back(slot);
    ++num_missing_;
    return nullptr;
  }
  copies_[slot].push_back(std::move(copy));
  ++num_copies_;
  return copies_[slot].back()->data() + (data - block);
}

void SlotCopies::Forget(uint32_t slot, const storage::Trajectory& item,
                        std::vector<DeviceCopyPtr>* copies) {
  if (slot >= copies_.size()) return;
  num_copies_ -= copies_[slot].size();
  std::move(copies_[slot].begin(), copies_[slot].end(), std::back_inserter(*copies));
  copies_[slot] = {};
  for (const storage::TrajectoryColumn& column : item.columns) {
    for (const storage::ChunkSlice& slice : column.slices) {
      const auto found = missing_.find(slice.source().data.data());
      if (found == missing_.end()) continue;
      auto& slots = found->second;
      const auto kept = std::remove(slots.begin(), slots.end(), slot);
      num_missing_ -= slots.end() - kept;
      slots.erase(kept, slots.end());
      if (slots.empty()) missing_.erase(found);
    }
  }
}

std::vector<uint32_t> SlotCopies::TakeArrived() {
  TierArrivals::Taken arrived = arrivals_->Take();
  if (arrived.more) {
    arrived.blocks.clear();
    for (const auto& [block, slots] : missing_) {
      if (tier_->Find(block) != nullptr) arrived.blocks.push_back(block);
    }
  }
  std::vector<uint32_t> slots;
  for (const std::byte* const block : arrived.blocks) {
    const auto found = missing_.find(block);
    if (found != missing_.end()) {
      slots.insert(slots.end(), found->second.begin(), found->second.end());
    }
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

}  // namespace gear_reverb::device
