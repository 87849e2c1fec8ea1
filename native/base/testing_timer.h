// The timer in tests of what several closures do.
#pragma once

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "native/base/timer.h"

namespace gear_reverb::base::testing {

// Keeps the timer's thread from running anything else while it lives. What is scheduled meanwhile
// then runs in the order of the deadlines, however late they were scheduled.
class TimerGate {
 public:
  TimerGate() {
    id_ = Timer::Get().Schedule(absl::InfinitePast(), [this] {
      while (!open_) absl::SleepFor(absl::Milliseconds(1));
    });
  }
  ~TimerGate() {
    open_ = true;
    Timer::Get().Cancel(id_);
  }
  TimerGate(const TimerGate&) = delete;
  TimerGate& operator=(const TimerGate&) = delete;

 private:
  std::atomic<bool> open_{false};
  Timer::Id id_;
};

}  // namespace gear_reverb::base::testing
