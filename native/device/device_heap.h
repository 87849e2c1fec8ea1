// Which bytes of a few large blocks of memory are in use. The bytes themselves are never touched:
// they may be a device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"

namespace gear_reverb::device {

// Thread-compatible. Best fit, neighbours merged when freed; O(log n) in the number of free ranges.
// Ranges start, and end, at multiples of kAlignment within their block.
class DeviceHeap {
 public:
  static constexpr uint64_t kAlignment = 256;

  // What a range of `bytes` takes.
  static constexpr uint64_t RoundUp(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // A block to cut ranges from; `bytes` is a multiple of kAlignment.
  void AddBlock(std::byte* data, uint64_t bytes);
  // Null where no free range is large enough. `bytes` > 0.
  std::byte* Allocate(uint64_t bytes);
  // What Allocate(bytes) gave.
  void Free(std::byte* data, uint64_t bytes);

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t free_bytes() const { return free_bytes_; }

 private:
  void Insert(std::byte* data, uint64_t bytes);
  using ByAddress = absl::btree_map<std::byte*, uint64_t>;
  void Erase(ByAddress::iterator range);

  ByAddress free_;
  absl::btree_set<std::pair<uint64_t, std::byte*>> by_size_;  // The same ranges.
  absl::btree_set<std::byte*> blocks_;                        // Where they start.
  uint64_t capacity_bytes_ = 0, free_bytes_ = 0;
};

}  // namespace gear_reverb::device
