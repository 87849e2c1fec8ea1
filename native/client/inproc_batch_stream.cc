#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "native/base/interrupt.h"
#include "native/base/mutex.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/client/inproc_streams.h"

namespace gear_reverb::client {
namespace {

using Samples = absl::StatusOr<std::vector<table::SampledItem>>;

// Draws straight from the table, in the calling thread; nothing is copied.
class InprocBatchStream final : public BatchStream {
 public:
  InprocBatchStream(std::shared_ptr<service::ReplayService> service,
                    std::shared_ptr<table::Table> table, absl::Duration timeout)
      : service_(std::move(service)), table_(std::move(table)), timeout_(timeout) {}

  absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, absl::Time deadline) override {
    Samples drawn = DrawItems(n, std::min(deadline, absl::Now() + timeout_));
    if (!drawn.ok()) return service_->Explain(drawn.status());
    return batch::Flatten(*std::move(drawn));
  }

  absl::Status Seed(uint64_t seed) override {
    random_ = std::make_shared<base::Philox>(seed);
    return absl::OkStatus();
  }

  void Cancel() override {
    table::Table::WaitId id;
    {
      base::MutexLock lock(&mutex_);
      cancelled_ = true;
      id = wait_id_;
    }
    if (id != 0) table_->Cancel(id);
  }

 private:
  // One call of the table, waited for: so the callback may refer to this object.
  Samples DrawItems(int64_t n, absl::Time deadline) {
    {
      base::MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("The batch stream was cancelled.");
      result_.reset();
    }
    const table::Table::WaitId id = table_->SampleAsync(
        n, deadline,
        [this](Samples samples) {
          base::MutexLock lock(&mutex_);
          result_.emplace(std::move(samples));
          changed_.NotifyAll();
        },
        random_);
    base::MutexLock lock(&mutex_);
    const auto done = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return result_.has_value(); };
    if (!done()) {
      wait_id_ = id;
      const bool cancel = cancelled_;
      // The table itself keeps the deadline.
      if (cancel ||
          !base::WaitInterruptibly(changed_, &mutex_, absl::InfiniteFuture(), done).ok()) {
        mutex_.Unlock();
        table_->Cancel(id);
        mutex_.Lock();
        while (!done()) changed_.Wait(&mutex_);
      }
      wait_id_ = 0;
    }
    return *std::exchange(result_, std::nullopt);
  }

  const std::shared_ptr<service::ReplayService> service_;
  const std::shared_ptr<table::Table> table_;
  const absl::Duration timeout_;          // Of every draw.
  std::shared_ptr<base::Philox> random_;  // Null: the table's own.

  base::Mutex mutex_;
  base::CondVar changed_;
  std::optional<Samples> result_ ABSL_GUARDED_BY(mutex_);
  table::Table::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;  // 0 but for a waiting call.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<BatchStream> NewInprocBatchStream(std::shared_ptr<service::ReplayService> service,
                                                  std::shared_ptr<table::Table> table,
                                                  absl::Duration rate_limiter_timeout) {
  return std::make_unique<InprocBatchStream>(std::move(service), std::move(table),
                                             rate_limiter_timeout);
}

}  // namespace gear_reverb::client
