// Rows of stacked tensors as chunks and trajectories: bulk insertion without a writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/storage/chunk.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::storage {

// N items as columns of shape [N, ...], row i of all columns being item i. If the columns have a
// second axis, of the same length T > 0 in all, then items are T steps long; otherwise they are
// single, squeezed steps. Either way an item's column has the shape of a row.
//
// Borrows the views' bytes.
class StackedRows {
 public:
  // Rows of about this many bytes share a chunk, at most kMaxRows of them; larger ones have their
  // own.
  static constexpr int64_t kChunkBytes = 64 << 10;
  static constexpr int64_t kMaxRows = 1024;

  // INVALID_ARGUMENT, naming the column, unless there is a column, all have rows and equally many,
  // and their bytes fit their dtypes and shapes.
  static absl::StatusOr<StackedRows> Create(std::vector<tensor::TensorView> columns);

  int64_t size() const { return size_; }
  // How many steps an item has, and whether its columns are without that axis.
  int32_t row_steps() const { return static_cast<int32_t>(row_steps_); }
  bool squeeze() const { return squeeze_; }
  absl::Span<const tensor::TensorView> columns() const { return columns_; }

  // Payload of rows [begin, end).
  int64_t Bytes(int64_t begin, int64_t end) const;
  // One past the last row that shares a chunk with row `begin`, which is its first.
  int64_t ChunkEnd(int64_t begin) const;
  // Rows [begin, end), not none, of a column as a chunk has them: where they lie, or in `packed` if
  // they are strings.
  tensor::TensorView Part(size_t column, int64_t begin, int64_t end, std::string* packed) const;
  SequenceRange Range(uint64_t episode_id, int64_t begin, int64_t end) const {
    return {episode_id, 0, static_cast<int32_t>((end - begin) * row_steps_ - 1), false};
  }
  // Copies rows [begin, end), not none, into `arena`.
  absl::StatusOr<ChunkPtr> Copy(memory::Arena& arena, uint64_t key, uint64_t episode_id,
                                int64_t begin, int64_t end) const;
  // Row `row` of a chunk of Copy.
  TrajectoryPtr Row(const ChunkPtr& chunk, int64_t row) const {
    return TrajectoryBuilder::SliceOf(chunk, static_cast<int32_t>(row * row_steps_),
                                      static_cast<int32_t>(row_steps_), squeeze_);
  }

 private:
  std::vector<tensor::TensorView> columns_;
  std::vector<int64_t> row_elements_;  // By column.
  int64_t size_ = 0;
  int64_t row_steps_ = 1;
  bool squeeze_ = true;
  bool has_strings_ = false;
  int64_t row_bytes_ = 0;  // Without text.
};

}  // namespace gear_reverb::storage
