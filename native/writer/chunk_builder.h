// A chunk on its way from its first step to its storage::Chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/storage/chunk.h"
#include "native/writer/column_buffer.h"

namespace gear_reverb::writer {

// Thread-compatible: guarded by its writer's lock. Shared by the cells and the unsent items that
// refer to it, so that it lives exactly as long as an item to come may use the chunk.
class ChunkBuilder {
 public:
  // A chunk for at most `max_steps` steps, with columns of the dtypes and shapes of `step`.
  ChunkBuilder(uint64_t key, uint64_t episode_id, int64_t max_steps,
               absl::Span<const tensor::TensorView> step);

  // Room for one more step, one checked tensor per column, of the chunk's dtypes and shapes.
  // RESOURCE_EXHAUSTED where there is no memory; nothing has changed then.
  absl::Status Reserve(absl::Span<const tensor::TensorView> step);
  // After Reserve(step). `index` is the step's number in the episode, larger than all before.
  void Append(absl::Span<const tensor::TensorView> step, int32_t index);

  // Makes the chunk; nothing can be appended afterwards. Does nothing the second time (but for
  // saying the same error), or where there is no step.
  absl::Status Finish();

  bool full() const { return steps_ == max_steps_; }
  int64_t steps() const { return steps_; }
  // Null until finished.
  const storage::ChunkPtr& chunk() const { return chunk_; }

  int64_t num_columns() const { return static_cast<int64_t>(columns_.size()); }
  const ColumnBuffer& column(int64_t column) const { return columns_[column]; }
  // A copy of one step of a column, finished or not; what Finish said if that was an error.
  absl::StatusOr<TensorCopy> Read(int64_t column, int64_t step) const;

 private:
  const uint64_t key_;
  absl::Status Make();

  const int64_t max_steps_;  // No more than a column's bytes allow.
  int64_t steps_ = 0;
  storage::SequenceRange range_;
  absl::InlinedVector<ColumnBuffer, 1> columns_;
  storage::ChunkPtr chunk_;
  absl::Status failed_;  // Once it is not OK the columns are gone.
};

}  // namespace gear_reverb::writer
