// A chunk: an immutable run of consecutive steps of one or more columns, raw and contiguous.
//
// Thread-safe because immutable. Chunks are shared by items and tables through ChunkPtr and give
// their bytes back to the arena when the last reference goes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/memory/arena.h"
#include "native/tensor/tensor_view.h"

namespace gear_reverb::storage {

// The steps of one episode that a chunk spans, both ends included. `sparse`: some are missing.
struct SequenceRange {
  uint64_t episode_id = 0;
  int32_t start = 0;
  int32_t end = 0;
  bool sparse = false;
};

// All steps of one column: shape is [steps, ...]. Strings are packed (see tensor_view.h).
struct ChunkColumn {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
  memory::Block data;

  int64_t steps() const { return shape[0]; }
  tensor::TensorView view() const { return {dtype, shape, data.span()}; }
};

class Chunk {
 public:
  // INVALID_ARGUMENT (naming the key and the column) unless there is a column, every shape has a
  // first axis of the same length > 0, and every column's bytes fit its dtype and shape.
  static absl::StatusOr<std::shared_ptr<const Chunk>> Create(uint64_t key, SequenceRange range,
                                                             std::vector<ChunkColumn> columns);

  uint64_t key() const { return key_; }
  const SequenceRange& range() const { return range_; }
  absl::Span<const ChunkColumn> columns() const { return columns_; }
  int64_t steps() const { return columns_[0].steps(); }
  // Payload bytes of all columns.
  int64_t bytes() const { return bytes_; }

 private:
  Chunk(uint64_t key, SequenceRange range, std::vector<ChunkColumn> columns, int64_t bytes);

  const uint64_t key_;
  const SequenceRange range_;
  const std::vector<ChunkColumn> columns_;
  const int64_t bytes_;
};

using ChunkPtr = std::shared_ptr<const Chunk>;

// Copies `views` (each [steps, ...]) into `arena` and makes a chunk of them.
absl::StatusOr<ChunkPtr> CopyToChunk(memory::Arena& arena, uint64_t key, SequenceRange range,
                                     absl::Span<const tensor::TensorView> views);

}  // namespace gear_reverb::storage
