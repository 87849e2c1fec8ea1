// Items that were drawn and not yet given out, group by group as they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/statusor.h"
#include "native/batch/drawn_batch.h"

namespace gear_reverb::client {

// Thread-compatible.
class DrawnQueue {
 public:
  int64_t size() const { return size_; }                                   // Items.
  const std::deque<batch::DrawnBatch>& groups() const { return groups_; }  // None is empty.

  void Push(batch::DrawnBatch group);
  void PutBack(batch::DrawnBatch group);  // In front.
  int64_t Clear();                        // How many items it had.

  // Takes out the first `n` items, of which there is one at least, or all there are. With
  // `block_bytes` only those that are alike and have about so many bytes, but one. Otherwise, if
  // they are not alike, INVALID_ARGUMENT, and they are gone.
  absl::StatusOr<batch::DrawnBatch> Take(int64_t n, std::optional<size_t> block_bytes);

 private:
  batch::DrawnBatch TakeFront(size_t n);

  std::deque<batch::DrawnBatch> groups_;
  int64_t size_ = 0;
};

}  // namespace gear_reverb::client
