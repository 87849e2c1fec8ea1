// Writes items whose columns are free choices of cells: Reverb's TrajectoryWriter.
//
// Append puts each value into its column's chunk under construction and hands out a weak
// reference; CreateItem makes an item of such references. An item leaves as soon as all chunks
// that it refers to are finished, after all items created before it. A chunk is finished when it
// has its length (see ChunkerOptions), and earlier by Flush and EndEpisode.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/base/philox.h"
#include "native/writer/chunker.h"
#include "native/writer/item_sender.h"
#include "native/writer/pending_items.h"
#include "native/writer/signature_check.h"

namespace gear_reverb::writer {

struct TrajectoryWriterOptions {
  ChunkerOptions chunker = AutoTunedChunkerOptions(1);  // Of columns without their own.
  SignatureProvider signatures;                         // Empty: items are not checked.
  SenderOptions sender;
};

// Thread-safe, though meant for one thread: steps of two threads would mix. While one thread waits
// in Flush or EndEpisode, another may Close.
//
// After an error that ends the stream for good, every method but Close returns that error; after
// Close, FAILED_PRECONDITION. Append, AppendPartial and CreateItem change nothing on error. They
// wait while more than SenderOptions::max_in_flight_bytes are unconfirmed.
class TrajectoryWriter {
 public:
  using Step = absl::InlinedVector<std::optional<tensor::TensorView>, 2>;
  using Cells = absl::InlinedVector<std::shared_ptr<CellRef>, 2>;

  // A column of an item to be created.
  struct ItemColumn {
    absl::Span<const CellRef* const> cells;
    bool squeeze = false;
  };

  // INVALID_ARGUMENT for bad chunker options.
  static absl::StatusOr<std::unique_ptr<TrajectoryWriter>> Create(
      std::shared_ptr<InsertStreamFactory> factory, TrajectoryWriterOptions options);
  ~TrajectoryWriter();  // Closes.

  // Copies one value per column (nullopt: none in this step; columns beyond the vector: none) and
  // returns its cells, null where there is no value. INVALID_ARGUMENT naming the column for a
  // malformed value, one that differs in dtype or shape from the column's first, or a second one
  // in the same step. Append ends the step, AppendPartial leaves it open.
  absl::StatusOr<Cells> Append(const Step& step, absl::Time deadline = absl::InfiniteFuture());
  absl::StatusOr<Cells> AppendPartial(const Step& step,
                                      absl::Time deadline = absl::InfiniteFuture());

  // INVALID_ARGUMENT naming the column unless: there is a column; every column has a cell; its
  // cells are this writer's, not expired, and equal in dtype and shape; a squeezed column has one
  // cell; the priority is finite; and the columns fit the table's signature. Without a deadline it
  // does not wait, whatever is unconfirmed.
  absl::Status CreateItem(const std::string& table, double priority,
                          absl::Span<const ItemColumn> columns,
                          std::optional<absl::Time> deadline = absl::InfiniteFuture());

  // For columns to come, and for existing ones with no chunk under construction
  // (FAILED_PRECONDITION). INVALID_ARGUMENT for bad options or a negative column.
  absl::Status ConfigureChunker(int64_t column, const ChunkerOptions& options);

  // Finishes the chunks of all unsent items but the newest `ignore_last_num_items`, and waits
  // until at most that many items are unsent or unconfirmed. DEADLINE_EXCEEDED, with the last
  // connection error if the server is away; UNAVAILABLE; CANCELLED. The items are on their way all
  // the same.
  absl::Status Flush(int64_t ignore_last_num_items = 0,
                     absl::Time deadline = absl::InfiniteFuture());

  // Finishes all chunks, flushes, and begins a new episode, the last also when the flush fails.
  // `clear_buffers`: all cells expire.
  absl::Status EndEpisode(bool clear_buffers, absl::Time deadline = absl::InfiniteFuture());

  // Ends the writer at once: unconfirmed items may be lost (Flush first), all cells expire.
  // Idempotent.
  void Close();

  // The largest number of references that any column keeps alive.
  int64_t max_num_keep_alive_refs() const;
  // Complete steps of this episode.
  int64_t episode_steps() const;

  SenderStats stats() const { return sender_.stats(); }

 private:
  TrajectoryWriter(std::shared_ptr<InsertStreamFactory> factory, TrajectoryWriterOptions options);

  absl::StatusOr<Cells> DoAppend(const Step& step, bool partial, absl::Time deadline);
  Chunker& ChunkerOf(int64_t column) ABSL_EXCLUSIVE_LOCKS_REQUIRED(scope_->mutex);
  absl::Status CheckColumn(size_t index, const ItemColumn& column) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(scope_->mutex);
  void NoteItem(absl::Span<const ItemColumn> columns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(scope_->mutex);
  absl::Status FinishAndSubmit(int64_t ignore_last_num_items, bool all_chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(scope_->mutex);

  const TrajectoryWriterOptions options_;
  const std::shared_ptr<CellScope> scope_ = std::make_shared<CellScope>();
  base::Philox keys_ ABSL_GUARDED_BY(scope_->mutex);
  std::map<int64_t, ChunkerOptions> configured_ ABSL_GUARDED_BY(scope_->mutex);
  // By column; null before the column's first value.
  std::vector<std::unique_ptr<Chunker>> chunkers_ ABSL_GUARDED_BY(scope_->mutex);
  StepId step_ ABSL_GUARDED_BY(scope_->mutex);  // The one that is open or comes next.
  PendingItems pending_ ABSL_GUARDED_BY(scope_->mutex);
  ItemSender sender_;
};

}  // namespace gear_reverb::writer
