// One thread of the process that runs closures at their deadlines.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"

namespace gear_reverb::base {

// Deadlines are kept on the steady clock, so that setting the wall clock does not move them.
using SteadyTime = std::chrono::steady_clock::time_point;
inline constexpr SteadyTime kNever = SteadyTime::max();

inline SteadyTime SteadyNow() { return std::chrono::steady_clock::now(); }
// `now` plus what is left until `time` by the wall clock; kNever for anything beyond a century.
SteadyTime ToSteady(absl::Time time);

// Thread-safe. The thread starts with the first closure. Closures run one after another with no
// lock held; they should be short, and may call the timer.
class Timer {
 public:
  using Id = uint64_t;  // Never 0.
  using Closure = absl::AnyInvocable<void()>;

  // The process's timer; never destroyed.
  static Timer& Get();

  // Runs `closure` once, at `deadline` or as soon after as the thread is free.
  Id Schedule(SteadyTime deadline, Closure closure);
  Id Schedule(absl::Time deadline, Closure closure) {
    return Schedule(ToSteady(deadline), std::move(closure));
  }

  // Afterwards the closure has run or never will, and is not running: waits for a running one,
  // unless it is that closure that calls. Returns whether it was kept from running.
  bool Cancel(Id id);

 private:
  Timer() = default;
  void Run();

  Mutex mutex_;
  CondVar changed_;  // A new first deadline, or a closure that has run.
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  Id last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Id running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<SteadyTime, Id>, Closure> pending_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Id, SteadyTime> deadlines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::base
