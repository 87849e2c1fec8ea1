#include "native/device/device_heap.h"

namespace gear_reverb::device {

void DeviceHeap::Insert(std::byte* data, uint64_t bytes) {
  free_.emplace(data, bytes);
  by_size_.emplace(bytes, data);
  free_bytes_ += bytes;
}

void DeviceHeap::Erase(ByAddress::iterator range) {
  by_size_.erase({range->second, range->first});
  free_bytes_ -= range->second;
  free_.erase(range);
}

void DeviceHeap::AddBlock(std::byte* data, uint64_t bytes) {
  blocks_.insert(data);
  capacity_bytes_ += bytes;
  Insert(data, bytes);
}

std::byte* DeviceHeap::Allocate(uint64_t bytes) {
  bytes = RoundUp(bytes);
  const auto fit = by_size_.lower_bound({bytes, nullptr});
  if (fit == by_size_.end()) return nullptr;
  const auto [size, data] = *fit;
  Erase(free_.find(data));
  if (size > bytes) Insert(data + bytes, size - bytes);
  return data;
}

void DeviceHeap::Free(std::byte* data, uint64_t bytes) {
  bytes = RoundUp(bytes);
  // Two blocks may touch by chance; a range never spans them.
  const auto after = free_.find(data + bytes);
  if (after != free_.end() && !blocks_.contains(after->first)) {
    bytes += after->second;
    Erase(after);
  }
  auto before = free_.lower_bound(data);
  if (before != free_.begin() && !blocks_.contains(data)) {
    --before;
    if (before->first + before->second == data) {
      data = before->first;
      bytes += before->second;
      Erase(before);
    }
  }
  Insert(data, bytes);
}

}  // namespace gear_reverb::device
