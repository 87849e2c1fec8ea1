// Writes items that are the last steps of a sequence, all columns alike: Reverb's older Writer.
//
// A chunk holds all columns of `chunk_length` consecutive steps. An item leaves as soon as the last
// of its chunks is finished, after all items created before it; items that one chunk completes
// leave together.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/base/philox.h"
#include "native/writer/chunk_builder.h"
#include "native/writer/item_sender.h"
#include "native/writer/pending_items.h"
#include "native/writer/signature_check.h"

namespace gear_reverb::writer {

struct WriterOptions {
  int64_t chunk_length = 1;   // Steps.
  int64_t max_timesteps = 1;  // The longest item; at least chunk_length.
  // Before it creates an item, the writer waits until fewer are unconfirmed.
  int64_t max_in_flight_items = 1;
  SignatureProvider signatures;  // Empty: items are not checked.
  SenderOptions sender;          // Its max_in_flight_items is replaced.
  // How long Close waits for an unavailable server.
  absl::Duration close_max_unavailable = absl::Seconds(10);
};

// Thread-safe, though meant for one thread. After an error that ends the stream for good, every
// method but Close returns that error; after Close, FAILED_PRECONDITION. Append and CreateItem
// change nothing on error; they wait while too much is unconfirmed.
class Writer {
 public:
  // INVALID_ARGUMENT unless 1 <= chunk_length <= max_timesteps and max_in_flight_items >= 1.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(
      std::shared_ptr<InsertStreamFactory> factory, WriterOptions options);
  ~Writer();  // Drops what is unconfirmed.

  // Copies one step, a value per column. INVALID_ARGUMENT naming the column for a malformed value,
  // or for a number of columns, dtype or shape that differs from the steps it would share a chunk
  // with.
  absl::Status Append(absl::Span<const tensor::TensorView> step);

  // Appends T steps, given as [T, ...] columns of equal T. All or nothing, but for running out of
  // memory or of an unavailable server while it waits between steps.
  absl::Status AppendSequence(absl::Span<const tensor::TensorView> sequence);

  // An item of the last `num_timesteps` steps. INVALID_ARGUMENT unless that many are buffered and
  // at most max_timesteps, they agree in dtypes and shapes and fit the table's signature, and the
  // priority is finite.
  absl::Status CreateItem(const std::string& table, int64_t num_timesteps, double priority);

  // Finishes the chunks of unsent items and waits for all confirmations.
  absl::Status Flush(absl::Time deadline = absl::InfiniteFuture());

  // Flushes and ends the writer, whether or not the flush succeeds; returns its error.
  // `retry_on_unavailable`: waits up to close_max_unavailable for an unavailable server, and
  // returns UNAVAILABLE then; without it, items that meet an unavailable server are dropped and
  // that is no error. FAILED_PRECONDITION the second time.
  absl::Status Close(bool retry_on_unavailable = true);

  uint64_t episode_id() const { return episode_id_; }
  // Steps appended.
  int64_t steps() const;
  const WriterOptions& options() const { return options_; }
  SenderStats stats() const { return sender_.stats(); }

 private:
  Writer(std::shared_ptr<InsertStreamFactory> factory, WriterOptions options);

  absl::Status CheckOpen(const char* method) const;
  absl::Status CheckStep(absl::Span<const tensor::TensorView> step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AppendChecked(absl::Span<const tensor::TensorView> step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasOpenChunk() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldChunks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckItem(const std::string& table, const tensor::Signature* signature,
                         int64_t num_timesteps) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FinishAndWait(absl::Time deadline, absl::Duration max_unavailable);

  const WriterOptions options_;
  mutable base::Mutex mutex_;
  base::Philox keys_ ABSL_GUARDED_BY(mutex_);
  const uint64_t episode_id_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those with a step among the last max_timesteps, oldest first; only the last may be unfinished.
  std::deque<std::shared_ptr<ChunkBuilder>> chunks_ ABSL_GUARDED_BY(mutex_);
  int64_t buffered_steps_ ABSL_GUARDED_BY(mutex_) = 0;  // Of chunks_.
  PendingItems pending_ ABSL_GUARDED_BY(mutex_);
  ItemSender sender_;
};

}  // namespace gear_reverb::writer
