// Waiting that the host program can break off, as Ctrl-C does in Python.
#pragma once

#include <algorithm>
#include <atomic>

#include "absl/status/status.h"
#include "native/base/mutex.h"

namespace gear_reverb::base {

// Asked now and then by waiting threads: whether the wait should end. Called with no lock held.
using InterruptHook = bool (*)();

inline std::atomic<InterruptHook> interrupt_hook{nullptr};

// Waits on `changed` until `done()` holds (OK), `deadline` passes (DEADLINE_EXCEEDED) or the hook
// says so (CANCELLED). `mutex` is held before, after and in `done`.
template <typename Predicate>
absl::Status WaitInterruptibly(CondVar& changed, Mutex* mutex, absl::Time deadline,
                               Predicate done) {
  constexpr absl::Duration kAskEvery = absl::Milliseconds(100);
  while (true) {
    const absl::Time slice_end = std::min(deadline, absl::Now() + kAskEvery);
    if (changed.WaitUntil(mutex, slice_end, done)) return absl::OkStatus();
    if (slice_end == deadline) return absl::DeadlineExceededError("Timeout exceeded.");
    if (const InterruptHook hook = interrupt_hook.load(); hook != nullptr) {
      mutex->Unlock();
      const bool interrupted = hook();
      mutex->Lock();
      if (interrupted) return absl::CancelledError("Interrupted.");
    }
  }
}

}  // namespace gear_reverb::base
