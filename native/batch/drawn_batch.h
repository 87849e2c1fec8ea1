// Items drawn together, flattened: what a batch is gathered from, wherever its bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "native/table/item.h"
#include "native/tensor/dtype.h"
#include "native/tensor/shape.h"

namespace gear_reverb::batch {

struct Piece {
  const std::byte* data;
  size_t bytes;
  const std::byte* block = nullptr;  // Where the chunk's column starts, if it is of this process.
};

// One column of all items. Strings have one piece per element, numbers one or more per item.
struct DrawnColumn {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape step_shape;  // The same for all items.
  bool squeezed = false;     // All items have one step, without an axis for it.

  std::vector<int32_t> lengths;      // Steps, by item.
  std::vector<Piece> pieces;         // Of item 0, then of item 1, and so on.
  std::vector<uint32_t> piece_ends;  // By item: one past its last piece.
};

struct DrawnBatch {
  // By item, in the order of drawing.
  std::vector<uint64_t> keys;
  std::vector<double> probabilities;
  std::vector<double> priorities;
  std::vector<int64_t> table_sizes;
  std::vector<int32_t> times_sampled;
  std::vector<uint8_t> rate_limited;  // Whether the draw had to wait; 0 or 1.

  std::vector<DrawnColumn> columns;
  std::shared_ptr<const void> lease;  // Keeps what the pieces point to.

  size_t size() const { return keys.size(); }
};

// The items of a large table lie anywhere, and each is reached by way of three others, every one a
// cache miss. Walking a group of items one pointer further at a time has the misses overlap; groups
// should be about so large.
inline constexpr size_t kPrefetched = 32;
void Prefetch(absl::Span<const table::SampledItem> items);

// Whether items of both can be in one batch: their columns have the same number, dtypes, step
// shapes and squeezing. None of the columns is empty.
bool AreAlike(const storage::Trajectory& a, const storage::Trajectory& b);

// In groups of neighbours that are alike, all of which share the items as their lease.
// INVALID_ARGUMENT, naming the item, for one that has no data or is too long.
absl::StatusOr<std::vector<DrawnBatch>> Flatten(std::vector<table::SampledItem> items);

}  // namespace gear_reverb::batch
