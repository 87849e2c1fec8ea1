#include "native/client/drawn_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "native/batch/join.h"

namespace gear_reverb::client {
namespace {

// How many of the first `n` items have no more than `*bytes`, which they are taken off; but
// `at_least` so many.
size_t FirstOfBytes(const batch::DrawnBatch& batch, size_t n, size_t at_least, size_t* bytes) {
  for (size_t item = 0; item < n; ++item) {
    size_t needed = 0;
    for (const batch::DrawnColumn& column : batch.columns) {
      const size_t begin = item == 0 ? 0 : column.piece_ends[item - 1];
      for (size_t i = begin; i < column.piece_ends[item]; ++i) needed += column.pieces[i].bytes;
    }
    if (needed > *bytes && item >= at_least) return item;
    *bytes -= std::min(needed, *bytes);
  }
  return n;
}

}  // namespace

void DrawnQueue::Push(batch::DrawnBatch group) {
  size_ += static_cast<int64_t>(group.size());
  groups_.push_back(std::move(group));
}

void DrawnQueue::PutBack(batch::DrawnBatch group) {
  size_ += static_cast<int64_t>(group.size());
  groups_.push_front(std::move(group));
}

int64_t DrawnQueue::Clear() {
  groups_.clear();
  return std::exchange(size_, 0);
}

absl::StatusOr<batch::DrawnBatch> DrawnQueue::Take(int64_t n, std::optional<size_t> block_bytes) {
  std::vector<batch::DrawnBatch> parts;
  auto room = static_cast<size_t>(std::min(n, size_));
  size_t bytes = block_bytes.value_or(0);
  while (room > 0) {
    const batch::DrawnBatch& next = groups_.front();
    size_t taken = std::min(room, next.size());
    if (block_bytes.has_value()) {
      if (!parts.empty() && !batch::CheckAlike(parts[0], next).ok()) break;
      taken = FirstOfBytes(next, taken, /*at_least=*/parts.empty() ? 1 : 0, &bytes);
      if (taken == 0) break;
    }
    room = taken < next.size() ? 0 : room - taken;
    parts.push_back(TakeFront(taken));
  }
  return batch::Join(std::move(parts));
}

batch::DrawnBatch DrawnQueue::TakeFront(size_t n) {
  batch::DrawnBatch taken = std::move(groups_.front());
  if (n < taken.size()) {
    groups_.front() = batch::SplitOff(&taken, n);
  } else {
    groups_.pop_front();
  }
  size_ -= static_cast<int64_t>(n);
  return taken;
}

}  // namespace gear_reverb::client
