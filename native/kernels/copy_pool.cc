#include "native/kernels/copy_pool.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "native/base/environment.h"

namespace gear_reverb::kernels {
namespace {

std::atomic<CopyPool*> pool{nullptr};

}  // namespace

int CopyThreads() {
  static const int threads = [] {
    constexpr int kMost = 8;
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const auto wanted = base::IntegerSetting("GEAR_REVERB_GATHER_THREADS", 1, 1024);
    return static_cast<int>(wanted.value_or(std::clamp(cores, 1, kMost)));
  }();
  return threads;
}

CopyPool& CopyPool::Get() {
  CopyPool* found = pool.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  static const bool watched = [] {
    // The parent's threads are not here, and its lock may be held by one: that pool is left alone.
    pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr, std::memory_order_release); });
    return true;
  }();
  (void)watched;
  auto* made = new CopyPool;
  if (pool.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

void CopyPool::Run(int helpers, absl::FunctionRef<void()> work) {
  if (helpers < 1 || taken_.exchange(true, std::memory_order_acquire)) return work();
  {
    base::MutexLock lock(&mutex_);
    StartThreads(helpers);
    work_ = &work;
    openings_ = helpers;
    wanted_.NotifyAll();
  }
  // Also when the caller's own work throws.
  const auto end = absl::MakeCleanup([this] {
    {
      base::MutexLock lock(&mutex_);
      openings_ = 0;
      work_ = nullptr;
      while (helping_ > 0) finished_.Wait(&mutex_);
    }
    taken_.store(false, std::memory_order_release);
  });
  work();
}

void CopyPool::StartThreads(int count) {
  try {
    for (; threads_ < count; ++threads_) std::thread([this] { Help(); }).detach();
  } catch (const std::system_error&) {
    // The system has no more: fewer threads do the same work.
  }
}

void CopyPool::Help() {
  base::MutexLock lock(&mutex_);
  while (true) {
    while (openings_ == 0) wanted_.Wait(&mutex_);
    --openings_;
    ++helping_;
    const absl::FunctionRef<void()>* const work = work_;
    mutex_.Unlock();
    (*work)();
    mutex_.Lock();
    if (--helping_ == 0) finished_.NotifyAll();
  }
}

}  // namespace gear_reverb::kernels
