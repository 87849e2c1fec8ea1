#include "native/client/sampler.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"

namespace gear_reverb::client {

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Create(ConnectionSource source,
                                                         const SamplerOptions& options) {
  if (options.max_in_flight < 1) {
    return base::InvalidArgument("max_in_flight_samples must be >= 1, but is ",
                                 options.max_in_flight, ".");
  }
  if (options.max_samples == 0) {
    return base::InvalidArgument("max_samples must be > 0, or negative for no end.");
  }
  return std::unique_ptr<Sampler>(new Sampler(std::move(source), options));
}

absl::Status Sampler::OpenStream(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, source_(deadline));
  GR_ASSIGN_OR_RETURN(stream_,
                      connection->OpenSampleStream(options_.table, options_.rate_limiter_timeout));
  retry_.Opened();
  in_flight_ = 0;
  return absl::OkStatus();
}

void Sampler::RequestMore() {
  int64_t room = options_.max_in_flight - in_flight_;
  if (options_.max_samples >= 0) {
    room = std::min(room, options_.max_samples - taken_ - in_flight_);
  }
  // In halves, so that a request is worth its message.
  if (room <= 0 || (in_flight_ > 0 && room < (options_.max_in_flight + 1) / 2)) return;
  in_flight_ += room;
  stream_->Request(room);
}

absl::StatusOr<std::optional<table::SampledItem>> Sampler::Next() {
  // Long enough for the wait to ask for the host program's interrupt meanwhile.
  constexpr absl::Duration kLookForCancelEvery = absl::Milliseconds(250);
  // What a living server's answer takes beyond the rate limiter's timeout.
  constexpr absl::Duration kSilence = absl::Seconds(5);

  GR_RETURN_IF_ERROR(CheckNotForked());
  if (options_.max_samples >= 0 && taken_ == options_.max_samples) return std::nullopt;
  const absl::Time start = absl::Now(), deadline = start + options_.rate_limiter_timeout;
  while (true) {
    if (cancelled_.load()) return absl::CancelledError("The sampler has been closed.");
    if (stream_ == nullptr) {
      const absl::Status opened = OpenStream(deadline);
      if (!opened.ok()) {
        GR_RETURN_IF_ERROR(retry_.Recover(opened, deadline));
        continue;
      }
    }
    RequestMore();
    absl::StatusOr<std::optional<table::SampledItem>> sample =
        stream_->Next(absl::Now() + kLookForCancelEvery);
    if (!sample.ok()) {
      if (!absl::IsCancelled(sample.status())) stream_ = nullptr;
      GR_RETURN_IF_ERROR(retry_.Recover(sample.status(), deadline));
      continue;
    }
    if (!sample->has_value()) {
      const absl::Time heard = std::max(start, stream_->last_heard());
      if (absl::Now() < heard + options_.rate_limiter_timeout + kSilence) continue;
      stream_ = nullptr;
      return absl::DeadlineExceededError(
          absl::StrCat("The server does not answer: no sample of table ", options_.table, "."));
    }
    retry_.Succeeded();
    --in_flight_;
    ++taken_;
    return sample;
  }
}

}  // namespace gear_reverb::client
