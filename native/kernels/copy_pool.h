// The threads that help with large gathers.
#pragma once

#include <atomic>

#include "absl/functional/function_ref.h"
#include "native/base/mutex.h"

namespace gear_reverb::kernels {

// How many threads copy at most, the calling one included: GEAR_REVERB_GATHER_THREADS, or as many
// as the machine has cores, 8 at most.
int CopyThreads();

// Thread-safe. Threads start when they are first wanted and then stay, asleep. One call has them at
// a time; others do their work alone.
class CopyPool {
 public:
  // The process's own, never destroyed; the child of a fork has another than its parent.
  static CopyPool& Get();

  // Calls `work` here and in up to `helpers` other threads at once, and returns when all calls
  // have. `work` takes its share from some common counter.
  void Run(int helpers, absl::FunctionRef<void()> work);

 private:
  CopyPool() = default;

  void StartThreads(int count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Help();

  std::atomic<bool> taken_{false};

  base::Mutex mutex_;
  base::CondVar wanted_, finished_;
  const absl::FunctionRef<void()>* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int openings_ ABSL_GUARDED_BY(mutex_) = 0;  // Threads that may still join the work.
  int helping_ ABSL_GUARDED_BY(mutex_) = 0;
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::kernels
