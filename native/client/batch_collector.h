// Draws batches of one table and gathers them, over streams that may break.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/batch/buffer_pool.h"
#include "native/batch/collate.h"
#include "native/client/connection.h"
#include "native/client/retry.h"

namespace gear_reverb::client {

struct CollectorOptions {
  std::string table;
  // Batch number i draws by a generator of its own, made of the seed and i, wherever the table's
  // stands: from an unchanged table, equal seeds draw equal batches.
  std::optional<uint64_t> seed;
  size_t kept_buffers = 2;  // For batches to come.
};

struct BatchRequest {
  int64_t size = 0;  // > 0.
  batch::Ragged ragged = batch::Ragged::kError;
  size_t max_bytes = 0;
};

// A gathered batch. Of `drawn`, pieces and lease are there only for columns of strings, whose text
// they hold.
struct Batch {
  batch::DrawnBatch drawn;
  batch::BatchLayout layout;
  std::shared_ptr<std::byte> buffer;  // layout.buffer_bytes bytes; null if that is 0.
};
using BatchPtr = std::unique_ptr<Batch>;

// Thread-compatible but for Cancel. Reports what was drawn and never given out when it ends.
class BatchCollector {
 public:
  BatchCollector(ConnectionSource source, CollectorOptions options);
  ~BatchCollector();

  // DEADLINE_EXCEEDED if the rate limiter did not give enough by `deadline`: nothing is lost, and
  // the next call goes on. INVALID_ARGUMENT, and the items are lost, if they do not make a batch.
  // When the server is UNAVAILABLE a new stream is tried for ConnectPatience(). RESOURCE_EXHAUSTED
  // without memory; nothing is thrown. `another`: the next call will ask for the like, which may be
  // drawn while this batch is gathered.
  absl::StatusOr<BatchPtr> Next(const BatchRequest& request, absl::Time deadline,
                                bool another = false);

  // Ends a waiting call, and all later ones, with CANCELLED. Thread-safe.
  void Cancel();

  // Adds to what is reported.
  void CountUnused(int64_t items) { unused_ += items; }

 private:
  absl::StatusOr<BatchPtr> DrawAndGather(const BatchRequest& request, absl::Time deadline,
                                         bool another);
  absl::StatusOr<batch::DrawnBatch> Draw(int64_t n, absl::Time deadline);
  // One try; UNAVAILABLE and others drop the stream.
  absl::StatusOr<batch::DrawnBatch> TryDraw(int64_t n, absl::Time deadline);
  void EndBatch();  // The next one is another.
  absl::Status OpenStream();
  absl::Status SeedStream();
  void DropStream();
  absl::StatusOr<BatchPtr> Gather(batch::DrawnBatch drawn, const BatchRequest& request);

  const ConnectionSource source_;
  const CollectorOptions options_;
  const std::shared_ptr<batch::BufferPool> buffers_;
  Retry retry_;
  std::shared_ptr<Connection> connection_;
  uint64_t batch_number_ = 0;
  bool seeded_ = false;  // The stream draws batch `batch_number_`.
  int64_t unused_ = 0;

  base::Mutex mutex_;
  // Changed by the owner's thread alone, under the lock; it reads without.
  std::unique_ptr<BatchStream> stream_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gear_reverb::client
