#include "native/client/retry.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "native/base/interrupt.h"
#include "native/client/connection.h"

namespace gear_reverb::client {

absl::Status Retry::Recover(const absl::Status& status, absl::Time deadline) {
  constexpr absl::Duration kPause = absl::Milliseconds(50);

  if (!absl::IsUnavailable(status)) return status;
  const absl::Time now = absl::Now();
  failing_since_ = std::min(failing_since_, now);
  if (now - failing_since_ >= ConnectPatience()) return status;
  if (now >= deadline) return absl::DeadlineExceededError(status.message());
  absl::SleepFor(std::min(kPause, deadline - now));
  const base::InterruptHook hook = base::interrupt_hook.load();
  if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
  return absl::OkStatus();
}

}  // namespace gear_reverb::client
