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
};

// Items of one table, many at a time and not yet gathered. Thread-compatible but for Cancel.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Items in the order in which they were drawn, in groups of neighbours that are alike: at least
  // one, and as many as the rate limiter lets through at once, of up to `n` or of up to what an
  // earlier call asked for that its deadline ended. Further `ahead` may be on their way for later
  // calls, where that spares a wait. DEADLINE_EXCEEDED with the rate limiter's text if there is
  // none by `deadline` (ask again), or for the stream's timeout; further errors as of
  // SampleStream::Next.
  virtual absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, int64_t ahead,
                                                              absl::Time deadline) = 0;

  // Draws of later calls take their random numbers from a generator of this seed, not from the
  // table's. UNIMPLEMENTED where the way of the data cannot carry it.
  virtual absl::Status Seed(uint64_t seed);

  // Items that were drawn and not yet given out.
  virtual int64_t held() const { return 0; }

  // Ends a waiting call, and all later ones, with CANCELLED.
  virtual void Cancel() = 0;
};

// Thread-safe. Calls that take a deadline end by it with DEADLINE_EXCEEDED; the others end with
// UNAVAILABLE if no connection can be made for ConnectPatience().
class Connection : public writer::InsertStreamFactory {
 public:
  // The server itself where it is in this process, else null.
  virtual std::shared_ptr<service::ReplayService> local_service() const { return nullptr; }
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

  virtual absl::Status MutatePriorities(const std::string& table,
                                        absl::Span<const table::KeyWithPriority> updates,
                                        absl::Span<const uint64_t> delete_keys) = 0;
  virtual absl::Status Reset(const std::string& table) = 0;
  virtual absl::StatusOr<std::string> Checkpoint() = 0;
  // Serialised TableInfos.
  virtual absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time deadline) = 0;
};

using ConnectionSource = std::function<absl::StatusOr<std::shared_ptr<Connection>>()>;

// How long to try to reach a server before giving up, where the caller gave no deadline:
// GEAR_REVERB_CONNECT_TIMEOUT seconds, or 60.
absl::Duration ConnectPatience();

}  // namespace gear_reverb::client
