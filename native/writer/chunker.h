// One column of a TrajectoryWriter: its cells, and the cutting of them into chunks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "native/base/philox.h"
#include "native/writer/cell_ref.h"
#include "native/writer/chunk_length_tuner.h"
#include "native/writer/chunker_options.h"

namespace gear_reverb::writer {

// Where a step stands.
struct StepId {
  uint64_t episode_id = 0;
  int32_t index = 0;

  friend bool operator==(const StepId&, const StepId&) = default;
};

// Every method is called with `scope->mutex` held. A chunk holds steps of one episode only: Finish
// comes between episodes.
class Chunker {
 public:
  // `options` are checked. `keys` gives chunk keys and outlives the chunker.
  Chunker(std::shared_ptr<CellScope> scope, int64_t column, const ChunkerOptions& options,
          base::Philox* keys);

  // INVALID_ARGUMENT (ending in "for column N…", which the caller may put a path for) unless the
  // value has the dtype and shape of the column's first and is the column's first in `step`.
  absl::Status Check(const tensor::TensorView& value, StepId step) const;

  // Room for a checked value. RESOURCE_EXHAUSTED; the cells are unchanged.
  absl::Status Reserve(const tensor::TensorView& value, StepId step);
  // After Reserve. The oldest cell beyond num_keep_alive_refs expires.
  std::shared_ptr<CellRef> Append(const tensor::TensorView& value, StepId step);

  // Whether the open chunk has reached its length.
  bool full() const { return open_ != nullptr && open_->full(); }
  // Finishes the open chunk, if there is one.
  absl::Status Finish();

  // FAILED_PRECONDITION while a chunk is open. Cells beyond the new limit expire.
  absl::Status Configure(const ChunkerOptions& options);
  const ChunkerOptions& options() const { return options_; }

  // All cells expire.
  void ExpireAll();

  // An item that refers to `steps` of this column's cells was created.
  void OnItem(int64_t steps) { tuner_.OnItem(steps); }

 private:
  void ExpireBeyond(size_t count);
  bool HasOpenChunk() const { return open_ != nullptr && open_->chunk() == nullptr; }

  const std::shared_ptr<CellScope> scope_;
  const int64_t column_;
  base::Philox* const keys_;
  ChunkerOptions options_;
  ChunkLengthTuner tuner_;

  // dtype and shape, from the first append on.
  struct Spec {
    tensor::DType dtype;
    tensor::Shape shape;
  };
  std::optional<Spec> spec_;
  std::optional<StepId> last_step_;
  std::shared_ptr<ChunkBuilder> open_;          // May be finished from outside, by an item's flush.
  std::deque<std::shared_ptr<CellRef>> cells_;  // Oldest first.
};

}  // namespace gear_reverb::writer
