#include "native/client/retry.h"

#include <algorithm>
#include <utility>

#include "native/base/interrupt.h"
#include "native/client/connection.h"

namespace gear_reverb::client {

absl::Status Retry::Recover(const absl::Status& status, absl::Time deadline) {
  constexpr absl::Duration kPause = absl::Milliseconds(50);
  // A stream that lasts so long was one, though a limiter may have let nothing through.
  constexpr absl::Duration kLasts = absl::Seconds(1);

  const absl::Time now = now_();
  if (now - std::exchange(opened_, absl::InfiniteFuture()) >= kLasts) Succeeded();
  if (!absl::IsUnavailable(status)) return status;
  failing_since_ = std::min(failing_since_, now);
  if (now - failing_since_ >= ConnectPatience()) return status;
  if (now >= deadline) return absl::DeadlineExceededError(status.message());
  pause_(std::min(kPause, deadline - now));
  const base::InterruptHook hook = base::interrupt_hook.load();
  if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
  return absl::OkStatus();
}

}  // namespace gear_reverb::client
