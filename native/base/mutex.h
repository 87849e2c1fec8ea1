// Mutex and condition variable over the standard library, with Clang's thread-safety annotations.
// The standard primitives (not Abseil's, which come prebuilt) let ThreadSanitizer see every lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gear_reverb::base {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class CondVar {
 public:
  void NotifyAll() { cv_.notify_all(); }

  void Wait(Mutex* mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }

  // Waits until `done()` holds or `deadline` passes; returns the last value of `done()`.
  template <typename Predicate>
  bool WaitUntil(Mutex* mutex, absl::Time deadline, Predicate done) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    bool ok;
    if (deadline == absl::InfiniteFuture()) {
      cv_.wait(lock, done);
      ok = true;
    } else {
      // Wall-clock jumps must not stretch the wait, so it is taken on the steady clock.
      const absl::Duration left = deadline - absl::Now();
      ok = cv_.wait_for(lock, absl::ToChronoNanoseconds(left), done);
    }
    lock.release();
    return ok;
  }

 private:
  std::condition_variable cv_;
};

}  // namespace gear_reverb::base
