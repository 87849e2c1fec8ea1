// Draws batches of one table and gathers them, over streams that may break.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/client/batch.h"
#include "native/client/batch_gatherer.h"
#include "native/client/connection.h"
#include "native/client/drawn_queue.h"
#include "native/client/retry.h"

namespace gear_reverb::client {

// What bounds a sequence of batches; by default it is endless.
struct SequenceLimits {
  int64_t max_items = -1;             // In all; < 0: no limit.
  int64_t max_items_per_stream = -1;  // A new stream is opened after so many; < 0: never.
  // The sequence ends when the rate limiter has not let an item through for so long.
  absl::Duration rate_limiter_timeout = absl::InfiniteDuration();
};

struct CollectorOptions {
  std::string table;
  // Batch number i draws by a generator of its own, made of the seed and i, wherever the table's
  // stands: from an unchanged table, equal seeds draw equal batches.
  std::optional<uint64_t> seed;
  size_t kept_buffers = 2;  // For batches to come.
  // Gathers batches; null: batch::Collate does. Casts are for a device only.
  std::shared_ptr<device::Device> device;
  device::Casts casts;
  SequenceLimits limits;
  int64_t ahead = 0;  // Items that may be on their way for batches to come.
  // The device draws too, as ResidentBatches has it: of equal seeds all batches are equal, in
  // order. Where it cannot, the host draws after all, but for first items (kTopK), where that is an
  // error. For requests that are padded or not ragged, without limits.
  std::optional<device::Choice> device_draws;
};

class ResidentBatches;

// Thread-compatible but for Cancel and why_host_draws. Reports what was drawn and never given out
// when it ends.
class BatchCollector {
 public:
  BatchCollector(ConnectionSource source, CollectorOptions options);
  ~BatchCollector();

  // DEADLINE_EXCEEDED if the rate limiter did not give enough by `deadline`: nothing is lost, and
  // the next call goes on. INVALID_ARGUMENT, and the items are lost, if they do not make a batch.
  // RESOURCE_EXHAUSTED without memory; the next call tries again with the same items where there is
  // none for the batch alone. OUT_OF_RANGE after the sequence's end. Nothing is thrown. When the
  // server is UNAVAILABLE a new stream is tried for ConnectPatience(). `another`: the next call
  // will ask for the like, which may be drawn while this batch is gathered.
  absl::StatusOr<BatchPtr> Next(const BatchRequest& request, absl::Time deadline,
                                bool another = false);

  // Ends a waiting call, and all later ones, with CANCELLED. Thread-safe.
  void Cancel();

  // Why the host draws, though the device should; "" while it does, or if it should not.
  std::string why_host_draws();

  // Adds to what is reported.
  void CountUnused(int64_t items) { unused_ += items; }

 private:
  absl::StatusOr<BatchPtr> DrawOnDevice(const BatchRequest& request, absl::Time deadline);
  absl::StatusOr<BatchPtr> DrawAndGather(const BatchRequest& request, absl::Time deadline,
                                         bool another);
  // Until `pending_` is enough for the request, or the sequence ends.
  absl::Status Fill(const BatchRequest& request, absl::Time deadline);
  // Adds to `pending_`, or sets `ended_`.
  absl::Status Draw(int64_t n, absl::Time deadline);
  // One try; UNAVAILABLE and others drop the stream.
  absl::Status TryDraw(int64_t n, absl::Time deadline);
  int64_t Room() const;  // How many more the stream may draw.
  void DrawAhead(int64_t n);
  void EndBatch();  // The next one is another.
  // What is drawn makes no batch.
  void RefusePending();
  // Tells the server of what it has drawn for nothing.
  void ReportUnused();
  absl::Status OpenStream(absl::Time deadline);
  absl::Status SeedStream();
  void DropStream();

  const ConnectionSource source_;
  const CollectorOptions options_;
  BatchGatherer gatherer_;
  Retry retry_;
  std::shared_ptr<Connection> connection_;
  uint64_t batch_number_ = 0;
  bool seeded_ = false;  // The stream draws batch `batch_number_`.
  int64_t unused_ = 0;
  DrawnQueue pending_;
  size_t item_bytes_ = 0;  // About; 0 while it is not known.
  int64_t drawn_ = 0;      // Items, by all streams.
  int64_t drawn_by_stream_ = 0;
  bool ended_ = false;   // Nothing is to be drawn any more.
  absl::Status failed_;  // Told once `pending_` is given out.
  bool again_ = false;   // The first of `pending_` is a batch that there was no memory for.

  base::Mutex mutex_;
  // Changed by the owner's thread alone, under the lock; it reads without.
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<ResidentBatches> resident_;
  std::string why_host_draws_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gear_reverb::client
