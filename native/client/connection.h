// What a client can ask of a server, whatever way the data takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/batch/drawn_batch.h"
#include "native/device/segment_source.h"
#include "native/storage/stacked_rows.h"
#include "native/table/item.h"
#include "native/writer/insert_stream.h"

namespace gear_reverb::service {
class ReplayService;
}  // namespace gear_reverb::service

namespace gear_reverb::client {

// Samples of one table, in the order in which they were drawn. Thread-compatible.
class SampleStream {
 public:
  // Ends the stream; what was asked for and not yet drawn is not drawn.
  virtual ~SampleStream() = default;

  // Asks for `n` further samples.
  virtual void Request(int64_t n) = 0;

  // The next sample; nullopt if there is none by `wait_until` (ask again). Errors are final:
  // DEADLINE_EXCEEDED with the rate limiter's text, UNAVAILABLE when the server goes away,
  // CANCELLED when the host program interrupts.
  virtual absl::StatusOr<std::optional<table::SampledItem>> Next(absl::Time wait_until) = 0;

  // When the server was last heard of, as far as is known: a sample may come in many parts.
  virtual absl::Time last_heard() const { return absl::InfinitePast(); }
};

// Items of one table, many at a time and not yet gathered. Thread-compatible but for Cancel.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Items in the order in which they were drawn, in groups of neighbours that are alike: at least
  // one, and as many as the rate limiter lets through at once, of up to `n`, or of up to what an
  // earlier call has asked for and not waited for. DEADLINE_EXCEEDED with the rate limiter's text
  // if there is none by `deadline` (ask again), or for the stream's timeout; further errors as of
  // SampleStream::Next.
  virtual absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, absl::Time deadline) = 0;

  // Draws of later calls take their random numbers from a generator of this seed, not from the
  // table's. UNIMPLEMENTED where the way of the data cannot carry it.
  virtual absl::Status Seed(uint64_t seed);

  // Has up to `n` items of later calls drawn meanwhile, where that takes a way to another process.
  virtual void DrawAhead(int64_t /*n*/) {}

  // Cancels. How many items were drawn and not given out.
  virtual int64_t End() {
    Cancel();
    return 0;
  }

  // Ends a waiting call, and all later ones, with CANCELLED.
  virtual void Cancel() = 0;
};

// Row i of `rows` as item i, with keys[i] and priorities[i].
struct StackedItems {
  const std::string& table;
  const storage::StackedRows& rows;
  absl::Span<const uint64_t> keys;
  absl::Span<const double> priorities;

  int64_t size() const { return rows.size(); }
};

// Which of such items a server has confirmed.
struct ConfirmedItems {
  explicit ConfirmedItems(int64_t size) : rows(size) {}
  std::vector<bool> rows;
  int64_t count = 0;
};

// Thread-safe. Calls that take a deadline end by it with DEADLINE_EXCEEDED; if it is infinite, and
// those that take none, with UNAVAILABLE if no connection can be made for ConnectPatience().
class Connection : public writer::InsertStreamFactory {
 public:
  // The server itself where it is in this process, else null.
  virtual std::shared_ptr<service::ReplayService> local_service() const { return nullptr; }
  // Where the pieces of batches lie, as a device may register it; null if there is no such place.
  virtual std::shared_ptr<device::SegmentSource> memory() { return nullptr; }
  // "in-process", "grpc".
  virtual std::string data_plane() const = 0;
  // False once the server is known to be gone for good from this way.
  virtual bool usable() const = 0;

  // `rate_limiter_timeout`: of every single draw; infinite for none.
  virtual absl::StatusOr<std::unique_ptr<SampleStream>> OpenSampleStream(
      const std::string& table, absl::Duration rate_limiter_timeout) = 0;

  virtual absl::StatusOr<std::unique_ptr<BatchStream>> OpenBatchStream(
      const std::string& table, absl::Duration rate_limiter_timeout) = 0;
  // Tells the table that `n` samples, drawn ahead of their use, were thrown away. Ends soon, and
  // does nothing if the server does not count them.
  virtual absl::Status ReportUnused(const std::string& table, int64_t n);

  // Inserts all items, with less ado than an insert stream, and waits until they are confirmed.
  // UNAVAILABLE where this way has no such means, or the server has gone; what is not confirmed
  // may then go by an insert stream. DEADLINE_EXCEEDED, CANCELLED, or what the server says.
  virtual absl::Status InsertStacked(const StackedItems& items, absl::Time deadline,
                                     ConfirmedItems* confirmed);

  virtual absl::Status MutatePriorities(const std::string& table,
                                        absl::Span<const table::KeyWithPriority> updates,
                                        absl::Span<const uint64_t> delete_keys,
                                        absl::Time deadline) = 0;
  virtual absl::Status Reset(const std::string& table, absl::Time deadline) = 0;
  virtual absl::StatusOr<std::string> Checkpoint(absl::Time deadline) = 0;
  // Serialised TableInfos.
  virtual absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time deadline) = 0;
};

// Gives up by the deadline.
using ConnectionSource =
    std::function<absl::StatusOr<std::shared_ptr<Connection>>(absl::Time deadline)>;

// How long to try to reach a server before giving up, where the caller gave no deadline:
// GEAR_REVERB_CONNECT_TIMEOUT seconds, or 60.
absl::Duration ConnectPatience();

}  // namespace gear_reverb::client
