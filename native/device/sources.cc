#include "native/device/sources.h"

namespace gear_reverb::device {

Sources::Found Sources::Find(const std::byte* block, const std::byte* data, uint64_t bytes) const {
  if (tier_ != nullptr && block != nullptr) {
    if (DeviceCopyPtr copy = tier_->Find(block)) {
      const std::byte* const address = copy->data() + (data - block);
      return {Place::kDevice, address, std::move(copy)};
    }
  }
  if (segments_ != nullptr) {
    if (const std::byte* const address = segments_->Find(data, bytes)) {
      return {Place::kRegistered, address, nullptr};
    }
  }
  return {};
}

Sources::Resolved Sources::Resolve(GatherPlan* plan) const {
  Resolved resolved;
  for (size_t i = 0; i < plan->pieces().size(); ++i) {
    RowPiece& piece = plan->mutable_piece(i);
    const uint64_t bytes = plan->piece_bytes(i);
    Found found = Find(plan->block(i), piece.data, bytes);
    if (found.place == Place::kNone) {
      resolved.not_found.push_back(i);
      continue;
    }
    piece.data = found.data;
    if (found.place == Place::kDevice) {
      resolved.device_bytes += bytes;
      resolved.copies.push_back(std::move(found.copy));
    }
  }
  return resolved;
}

}  // namespace gear_reverb::device
