// A chunk: an immutable run of consecutive steps of one or more columns, raw and contiguous.
//
// Thread-safe because immutable. Chunks are shared by items and tables through ChunkPtr and give
// their bytes back to the arena when the last reference goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/base/ref_ptr.h"
#include "native/memory/arena.h"
#include "native/tensor/shared_type.h"
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
  ChunkColumn() = default;
  ChunkColumn(tensor::DType dtype, absl::Span<const int64_t> shape, memory::Block bytes = {})
      : type(dtype, shape), data(std::move(bytes)) {}

  tensor::SharedType type;
  memory::Block data;

  tensor::DType dtype() const { return type.dtype(); }
  absl::Span<const int64_t> shape() const { return type.shape(); }
  int64_t steps() const { return shape()[0]; }
  tensor::TensorView view() const {
    return {dtype(), tensor::Shape(shape().begin(), shape().end()), data.span()};
  }
};

class Chunk;
using ChunkPtr = base::RefPtr<const Chunk>;

// One allocation, the columns at its end, with counts of its own: there may be one per item.
class Chunk {
 public:
  // INVALID_ARGUMENT (naming the key and the column) unless there is a column, every shape has a
  // first axis of the same length > 0, and every column's bytes fit its dtype and shape.
  static absl::StatusOr<ChunkPtr> Create(uint64_t key, SequenceRange range,
                                         std::vector<ChunkColumn> columns);

  uint64_t key() const { return key_; }
  SequenceRange range() const { return {episode_id_, start_, end_, sparse_ != 0}; }
  absl::Span<const ChunkColumn> columns() const {
    return {reinterpret_cast<const ChunkColumn*>(this + 1), num_columns_};
  }
  int64_t steps() const { return columns()[0].steps(); }
  // Payload bytes of all columns.
  int64_t bytes() const;

  // Room for one user to count in (a table its references), so that most chunks need no entry in a
  // map: 0, or what that user, having found 0, put there. See table/counters.h.
  std::atomic<uint64_t>& user_count() const { return user_count_; }

  // For ChunkPtr, and for many of them at once.
  void AddRef(uint32_t n = 1) const { references_.Add(n); }
  void Release(uint32_t n = 1) const;

 private:
  Chunk(uint64_t key, SequenceRange range, std::vector<ChunkColumn> columns);
  ~Chunk();

  mutable base::RefCount references_;
  const uint32_t num_columns_ : 31;
  const uint32_t sparse_ : 1;
  const uint64_t key_;
  const uint64_t episode_id_;
  const int32_t start_, end_;
  mutable std::atomic<uint64_t> user_count_{0};
};

// Copies `views` (each [steps, ...]) into `arena` and makes a chunk of them.
absl::StatusOr<ChunkPtr> CopyToChunk(memory::Arena& arena, uint64_t key, SequenceRange range,
                                     absl::Span<const tensor::TensorView> views);

}  // namespace gear_reverb::storage
