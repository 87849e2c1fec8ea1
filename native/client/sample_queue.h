// Where a stream's producer leaves samples for its consumer.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "native/base/interrupt.h"
#include "native/base/mutex.h"
#include "native/table/item.h"

namespace gear_reverb::client {

// Thread-safe. The first end counts; samples pushed before it are still given out.
class SampleQueue {
 public:
  void Push(table::SampledItem sample) {
    base::MutexLock lock(&mutex_);
    samples_.push_back(std::move(sample));
    changed_.NotifyAll();
  }

  void End(absl::Status status) {
    base::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = std::move(status);
    changed_.NotifyAll();
  }

  // As SampleStream::Next; the end's status when all samples are taken.
  absl::StatusOr<std::optional<table::SampledItem>> Pop(absl::Time wait_until) {
    base::MutexLock lock(&mutex_);
    const absl::Status waited = base::WaitInterruptibly(
        changed_, &mutex_, wait_until, [this] { return !samples_.empty() || end_.has_value(); });
    if (absl::IsDeadlineExceeded(waited)) return std::nullopt;
    if (!waited.ok()) return waited;
    if (samples_.empty()) return *end_;
    std::optional<table::SampledItem> sample(std::move(samples_.front()));
    samples_.pop_front();
    return sample;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<table::SampledItem> samples_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::client
