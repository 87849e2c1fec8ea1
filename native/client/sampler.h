// Draws samples of one table, a bounded number in flight, over streams that may break.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/client/connection.h"
#include "native/client/retry.h"

namespace gear_reverb::client {

struct SamplerOptions {
  std::string table;
  int64_t max_samples = -1;     // < 0: no end.
  int64_t max_in_flight = 100;  // Asked for and not yet taken; > 0.
  absl::Duration rate_limiter_timeout = absl::InfiniteDuration();
};

// Thread-compatible but for Cancel. When the server is UNAVAILABLE a new stream is tried for
// ConnectPatience() since the last sample or stream, and no longer than the rate limiter's timeout;
// samples in flight then are lost, as they are to Reverb's clients. The server keeps that timeout,
// but one that is not heard of for a while longer is not waited for.
class Sampler {
 public:
  // INVALID_ARGUMENT naming the option.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(ConnectionSource source,
                                                         const SamplerOptions& options);

  // The next sample; nullopt after `max_samples`. DEADLINE_EXCEEDED with the rate limiter's text
  // by its timeout, with another if the server is away or silent. FAILED_PRECONDITION in a forked
  // child.
  absl::StatusOr<std::optional<table::SampledItem>> Next();

  // Ends a waiting Next, and all later ones, with CANCELLED; from any thread.
  void Cancel() { cancelled_.store(true); }

 private:
  Sampler(ConnectionSource source, const SamplerOptions& options)
      : source_(std::move(source)), options_(options) {}

  absl::Status OpenStream(absl::Time deadline);
  void RequestMore();
  const ConnectionSource source_;
  const SamplerOptions options_;
  std::unique_ptr<SampleStream> stream_;
  int64_t taken_ = 0;
  int64_t in_flight_ = 0;
  Retry retry_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace gear_reverb::client
