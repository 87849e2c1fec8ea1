// What a client can ask of a server, whatever way the data takes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/table/item.h"
#include "native/writer/insert_stream.h"

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

// Thread-safe. Calls that take a deadline end by it with DEADLINE_EXCEEDED; the others end with
// UNAVAILABLE if no connection can be made for ConnectPatience().
class Connection : public writer::InsertStreamFactory {
 public:
  // "in-process", "grpc".
  virtual std::string data_plane() const = 0;
  // False once the server is known to be gone for good from this way.
  virtual bool usable() const = 0;

  // `rate_limiter_timeout`: of every single draw; infinite for none.
  virtual absl::StatusOr<std::unique_ptr<SampleStream>> OpenSampleStream(
      const std::string& table, absl::Duration rate_limiter_timeout) = 0;

  virtual absl::Status MutatePriorities(const std::string& table,
                                        absl::Span<const table::KeyWithPriority> updates,
                                        absl::Span<const uint64_t> delete_keys) = 0;
  virtual absl::Status Reset(const std::string& table) = 0;
  virtual absl::StatusOr<std::string> Checkpoint() = 0;
  // Serialised TableInfos.
  virtual absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time deadline) = 0;
};

// How long to try to reach a server before giving up, where the caller gave no deadline:
// GEAR_REVERB_CONNECT_TIMEOUT seconds, or 60.
absl::Duration ConnectPatience();

}  // namespace gear_reverb::client
