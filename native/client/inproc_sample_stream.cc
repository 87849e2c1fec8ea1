#include <algorithm>
#include <utility>

#include "native/client/inproc_streams.h"
#include "native/client/sample_queue.h"

namespace gear_reverb::client {
namespace {

// One draw at a time is asked of the table, for all the samples that are still wanted. The draws'
// callbacks hold this state, the stream owns it; they may come in any thread.
class DrawLoop : public std::enable_shared_from_this<DrawLoop> {
 public:
  DrawLoop(std::shared_ptr<service::ReplayService> service, std::shared_ptr<table::Table> table,
           absl::Duration timeout)
      : service_(std::move(service)), table_(std::move(table)), timeout_(timeout) {}

  void Request(int64_t n) {
    {
      base::MutexLock lock(&mutex_);
      wanted_ += n;
      if (drawing_) return;
      drawing_ = true;
    }
    Draw();
  }

  void Cancel() {
    table::Table::WaitId id;
    {
      base::MutexLock lock(&mutex_);
      cancelled_ = true;
      id = wait_id_;
    }
    if (id != 0) table_->Cancel(id);
  }

  SampleQueue& queue() { return queue_; }

 private:
  // Called with `drawing_` set; draws until nothing more is wanted or a draw has to wait.
  void Draw() {
    while (true) {
      int64_t n;
      uint64_t draw;
      {
        base::MutexLock lock(&mutex_);
        if (wanted_ == 0 || cancelled_) {
          drawing_ = false;
          return;
        }
        n = wanted_;
        draw = ++draw_;
        wait_id_ = 0;
        in_call_ = true;
      }
      const table::Table::WaitId id = table_->SampleAsync(
          n, absl::Now() + timeout_,
          [self = shared_from_this()](absl::StatusOr<std::vector<table::SampledItem>> samples) {
            self->OnSampled(std::move(samples));
          });
      bool cancel;
      {
        base::MutexLock lock(&mutex_);
        in_call_ = false;
        cancel = cancelled_;
        const bool waits = draw_ == draw;  // OnSampled moves on.
        if (waits) wait_id_ = id;
        if (waits && !cancel) return;
      }
      if (cancel && id != 0) return table_->Cancel(id);
    }
  }

  void OnSampled(absl::StatusOr<std::vector<table::SampledItem>> samples) {
    const bool ok = samples.ok();
    if (ok) {
      for (table::SampledItem& sample : *samples) queue_.Push(std::move(sample));
    } else {
      queue_.End(service_->Explain(samples.status()));
    }
    {
      base::MutexLock lock(&mutex_);
      ++draw_;
      wait_id_ = 0;
      if (ok) {
        wanted_ -= samples->size();
      } else {
        cancelled_ = true;  // The stream is over.
      }
      if (in_call_) return;  // Draw goes on by itself.
    }
    Draw();
  }

  const std::shared_ptr<service::ReplayService> service_;
  const std::shared_ptr<table::Table> table_;
  const absl::Duration timeout_;
  SampleQueue queue_;

  base::Mutex mutex_;
  int64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t draw_ ABSL_GUARDED_BY(mutex_) = 0;
  table::Table::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool drawing_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_call_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

class InprocSampleStream final : public SampleStream {
 public:
  explicit InprocSampleStream(std::shared_ptr<DrawLoop> loop) : loop_(std::move(loop)) {}
  ~InprocSampleStream() override { loop_->Cancel(); }

  void Request(int64_t n) override { loop_->Request(n); }
  absl::StatusOr<std::optional<table::SampledItem>> Next(absl::Time wait_until) override {
    return loop_->queue().Pop(wait_until);
  }

 private:
  const std::shared_ptr<DrawLoop> loop_;
};

}  // namespace

std::unique_ptr<SampleStream> NewInprocSampleStream(std::shared_ptr<service::ReplayService> service,
                                                    std::shared_ptr<table::Table> table,
                                                    absl::Duration rate_limiter_timeout) {
  return std::make_unique<InprocSampleStream>(
      std::make_shared<DrawLoop>(std::move(service), std::move(table), rate_limiter_timeout));
}

}  // namespace gear_reverb::client
