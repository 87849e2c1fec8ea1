#include "native/base/timer.h"

#include <algorithm>
#include <thread>

#include "absl/time/clock.h"

namespace gear_reverb::base {
namespace {

thread_local bool on_timer_thread = false;

}  // namespace

SteadyTime ToSteady(absl::Time time) {
  constexpr absl::Duration kCentury = absl::Hours(24 * 365 * 100);
  const absl::Duration left = time - absl::Now();
  if (left > kCentury) return kNever;
  return SteadyNow() + absl::ToChronoNanoseconds(std::max(left, absl::ZeroDuration()));
}

Timer& Timer::Get() {
  static Timer* const timer = new Timer;
  return *timer;
}

Timer::Id Timer::Schedule(SteadyTime deadline, Closure closure) {
  MutexLock lock(&mutex_);
  if (!started_) {
    std::thread([this] { Run(); }).detach();
    started_ = true;
  }
  const Id id = ++last_id_;
  deadlines_.emplace(id, deadline);
  const auto added = pending_.emplace(std::make_pair(deadline, id), std::move(closure)).first;
  if (added == pending_.begin()) changed_.NotifyAll();
  return id;
}

bool Timer::Cancel(Id id) {
  Closure cancelled;  // Destroyed after the lock.
  MutexLock lock(&mutex_);
  if (const auto found = deadlines_.find(id); found != deadlines_.end()) {
    const auto entry = pending_.find({found->second, id});
    cancelled = std::move(entry->second);
    pending_.erase(entry);
    deadlines_.erase(found);
    return true;
  }
  if (!on_timer_thread) {
    while (running_ == id) changed_.Wait(&mutex_);
  }
  return false;
}

void Timer::Run() {
  on_timer_thread = true;
  mutex_.Lock();
  while (true) {
    if (pending_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const auto first = pending_.begin();
    const SteadyTime deadline = first->first.first;
    if (const auto left = deadline - SteadyNow(); left > left.zero()) {
      // In slices, for the sake of deadlines that are beyond what a wait can take.
      const auto slice = std::min<SteadyTime::duration>(left, std::chrono::hours(1));
      changed_.WaitUntil(&mutex_, absl::Now() + absl::FromChrono(slice), [&] {
        return pending_.empty() || pending_.begin()->first.first < deadline;
      });
      continue;
    }
    running_ = first->first.second;
    Closure closure = std::move(first->second);
    deadlines_.erase(running_);
    pending_.erase(first);
    mutex_.Unlock();
    closure();
    closure = nullptr;
    mutex_.Lock();
    running_ = 0;
    changed_.NotifyAll();
  }
}

}  // namespace gear_reverb::base
