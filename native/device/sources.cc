#include "native/device/sources.h"

namespace gear_reverb::device {

Sources::Found Sources::Find(const std::byte* block, const std::byte* data, uint64_t bytes) const {
  return FindBeside(tier_ == nullptr ? nullptr : tier_->Find(block), block, data, bytes);
}

Sources::Found Sources::FindBeside(DeviceCopyPtr copy, const std::byte* block,
                                   const std::byte* data, uint64_t bytes) const {
  if (copy != nullptr) {
    const std::byte* const address = copy->data() + (data - block);
    return {Place::kDevice, address, std::move(copy)};
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
  const auto blocks = plan->blocks();
  std::vector<DeviceCopyPtr> copies(blocks.size());
  if (tier_ != nullptr) tier_->Find(blocks, absl::MakeSpan(copies));
  for (size_t i = 0; i < blocks.size(); ++i) {
    RowPiece& piece = plan->mutable_piece(i);
    const uint64_t bytes = plan->piece_bytes(i);
    Found found = FindBeside(std::move(copies[i]), blocks[i], piece.data, bytes);
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
