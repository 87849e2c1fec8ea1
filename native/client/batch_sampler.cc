#include "native/client/batch_sampler.h"

#include <utility>

#include "native/base/interrupt.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/table/table.h"

namespace gear_reverb::client {
namespace {

// More would be gigabytes of batches by mistake.
constexpr int64_t kMostPrefetch = 1024;

absl::Status Closed() {
  return absl::FailedPreconditionError("The batch sampler has been closed.");
}

}  // namespace

absl::StatusOr<BatchSampler::Pointer> BatchSampler::Create(ConnectionSource source,
                                                           const BatchSamplerOptions& options) {
  if (options.request.size < 1) {
    return base::InvalidArgument("batch_size (", options.request.size, ") must be >= 1.");
  }
  if (options.prefetch < 0 || options.prefetch > kMostPrefetch) {
    return base::InvalidArgument("prefetch (", options.prefetch, ") must be in [0, ", kMostPrefetch,
                                 "].");
  }
  return Pointer(new BatchSampler(std::move(source), options));
}

BatchSampler::BatchSampler(ConnectionSource source, const BatchSamplerOptions& options)
    : options_(options),
      collector_(std::make_unique<BatchCollector>(
          std::move(source),
          CollectorOptions{options.table, options.seed, static_cast<size_t>(options.prefetch) + 2,
                           options.device, options.casts, options.limits, options.ahead,
                           options.device_draws})) {}

BatchSampler::~BatchSampler() { Close(); }

void BatchSampler::Deleter::operator()(BatchSampler* sampler) const {
  if (CheckNotForked().ok()) delete sampler;
}

absl::StatusOr<BatchPtr> BatchSampler::Next(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  return options_.prefetch == 0 && !options_.polled ? DrawHere(deadline) : TakePrefetched(deadline);
}

absl::StatusOr<BatchPtr> BatchSampler::DrawHere(absl::Time deadline) {
  {
    base::MutexLock lock(&mutex_);
    const absl::Status waited = base::WaitInterruptibly(
        changed_, &mutex_, deadline, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !drawing_; });
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError(table::kRateLimiterTimeout);
    }
    GR_RETURN_IF_ERROR(waited);
    if (closed_) return Closed();
    drawing_ = true;
  }
  absl::StatusOr<BatchPtr> batch = collector_->Next(options_.request, deadline);
  base::MutexLock lock(&mutex_);
  drawing_ = false;
  changed_.NotifyAll();
  return batch;
}

absl::StatusOr<BatchPtr> BatchSampler::TakePrefetched(absl::Time deadline) {
  base::MutexLock lock(&mutex_);
  if (closed_) return Closed();
  if (thread_ == nullptr) {
    thread_ = std::make_unique<std::thread>([this] { Prefetch(); });
    drawing_ = true;  // Not if there is no thread to be had.
  }
  ++waiting_;
  if (finished_.empty()) changed_.NotifyAll();
  const absl::Status waited = base::WaitInterruptibly(
      changed_, &mutex_, deadline,
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !finished_.empty() || closed_; });
  --waiting_;
  if (absl::IsDeadlineExceeded(waited)) {
    return absl::DeadlineExceededError(table::kRateLimiterTimeout);
  }
  GR_RETURN_IF_ERROR(waited);
  if (closed_) return absl::CancelledError("The batch sampler has been closed.");
  absl::StatusOr<BatchPtr> batch = std::move(finished_.front());
  finished_.pop_front();
  changed_.NotifyAll();
  return batch;
}

bool BatchSampler::ReadyForMore() const {
  if (finished_.empty()) return options_.prefetch > 0 || waiting_ > 0;
  return finished_.size() < static_cast<size_t>(options_.prefetch) && finished_.back().ok();
}

void BatchSampler::Prefetch() {
  base::MutexLock lock(&mutex_);
  while (!closed_) {
    if (!ReadyForMore()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const bool another = finished_.size() + 2 <= static_cast<size_t>(options_.prefetch);
    mutex_.Unlock();
    absl::StatusOr<BatchPtr> batch =
        collector_->Next(options_.request, absl::InfiniteFuture(), another);
    mutex_.Lock();
    finished_.push_back(std::move(batch));
    changed_.NotifyAll();
  }
  drawing_ = false;
  changed_.NotifyAll();
}

void BatchSampler::Close() {
  if (!CheckNotForked().ok()) return;
  base::MutexLock lock(&mutex_);
  const bool first = !std::exchange(closed_, true);
  changed_.NotifyAll();
  mutex_.Unlock();
  if (first) collector_->Cancel();
  mutex_.Lock();
  while (drawing_) changed_.Wait(&mutex_);
  if (!first) return;
  for (const absl::StatusOr<BatchPtr>& batch : finished_) {
    if (batch.ok()) collector_->CountUnused((*batch)->size());
  }
  finished_.clear();
  mutex_.Unlock();
  if (thread_ != nullptr) thread_->join();
  mutex_.Lock();
  std::unique_ptr<BatchCollector> collector = std::move(collector_);
  mutex_.Unlock();
  collector = nullptr;  // Reports.
  mutex_.Lock();
}

std::string BatchSampler::why_host_draws() {
  base::MutexLock lock(&mutex_);
  return collector_ == nullptr ? "" : collector_->why_host_draws();
}

}  // namespace gear_reverb::client
