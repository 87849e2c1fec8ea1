// Whether to go on after a server was UNAVAILABLE.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gear_reverb::client {

// Thread-compatible.
class Retry {
 public:
  using Clock = std::function<absl::Time()>;
  using Pause = std::function<void(absl::Duration)>;

  explicit Retry(Clock now = absl::Now, Pause pause = absl::SleepFor)
      : now_(std::move(now)), pause_(std::move(pause)) {}

  // OK, after a moment, if another try is worth it: `status` is UNAVAILABLE, and has been for less
  // than ConnectPatience() since the last success, or a stream that lasted. Otherwise `status`;
  // DEADLINE_EXCEEDED by `deadline`; CANCELLED when the host program interrupts.
  absl::Status Recover(const absl::Status& status, absl::Time deadline);
  void Succeeded() { failing_since_ = absl::InfiniteFuture(); }
  // A stream was opened; the next Recover is about its end.
  void Opened() { opened_ = now_(); }

 private:
  const Clock now_;
  const Pause pause_;
  absl::Time opened_ = absl::InfiniteFuture();
  absl::Time failing_since_ = absl::InfiniteFuture();
};

}  // namespace gear_reverb::client
