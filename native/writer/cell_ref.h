// A cell: one step of one column, as the user of a TrajectoryWriter refers to it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/writer/chunk_builder.h"

namespace gear_reverb::writer {

// What all cells of one writer share: its lock, and by its address the writer's identity.
struct CellScope {
  base::Mutex mutex;
};

// Thread-safe. Weak: the data goes when the cell falls out of its column's newest
// `num_keep_alive_refs`, or with the writer's buffers; holding the reference keeps nothing alive.
class CellRef {
 public:
  CellRef(std::shared_ptr<CellScope> scope, int64_t column, std::shared_ptr<ChunkBuilder> chunk,
          int32_t offset)
      : scope_(std::move(scope)), column_(column), offset_(offset), chunk_(std::move(chunk)) {}

  bool expired() const;

  // All three: FAILED_PRECONDITION where expired. The shape has no axis for time.
  absl::StatusOr<tensor::DType> dtype() const;
  absl::StatusOr<tensor::Shape> shape() const;
  absl::StatusOr<TensorCopy> Copy() const;

 private:
  friend class Chunker;
  friend class TrajectoryWriter;

  const std::shared_ptr<CellScope> scope_;
  const int64_t column_;                                                // The writer's.
  const int32_t offset_;                                                // In the chunk.
  std::shared_ptr<ChunkBuilder> chunk_ ABSL_GUARDED_BY(scope_->mutex);  // Null: expired.
};

}  // namespace gear_reverb::writer
