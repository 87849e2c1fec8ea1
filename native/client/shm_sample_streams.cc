#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "native/base/status.h"
#include "native/client/shm_batches.h"
#include "native/client/shm_streams.h"
#include "native/table/table.h"

namespace gear_reverb::client {
namespace {

// A server answers at once when it is told to stop.
constexpr absl::Duration kLastAnswer = absl::Seconds(1);

// Reads answers in the thread that asks for samples.
class ShmSampleStream final : public SampleStream {
 public:
  ShmSampleStream(std::shared_ptr<ShmControl> control, const std::string& table,
                  absl::Duration timeout)
      : control_(std::move(control)), table_(table), timeout_(timeout) {}

  // Samples that were given out keep the connection, and with it what they point to.
  ~ShmSampleStream() override { control_->Cancel(); }

  void Request(int64_t n) override {
    shm::DrawRequest request;
    request.table = table_;
    request.n = n;
    request.timeout = timeout_;
    // A failure is also what the next read meets.
    if (absl::Status sent = control_->Request(std::move(request)); !sent.ok() && end_.ok()) {
      end_ = std::move(sent);
    }
  }

  absl::StatusOr<std::optional<table::SampledItem>> Next(absl::Time wait_until) override {
    while (samples_.empty()) {
      if (!end_.ok()) return end_;
      auto answer = control_->Next(wait_until);
      if (!answer.ok()) {
        // An interrupted wait can be taken up again.
        if (!absl::IsCancelled(answer.status())) end_ = answer.status();
        return answer.status();
      }
      if (!answer->has_value()) return std::nullopt;
      if (!(*answer)->failed.ok()) {
        end_ = (*answer)->failed;
        continue;
      }
      for (const batch::DrawnBatch& group : (*answer)->groups) {
        GR_ASSIGN_OR_RETURN(auto samples, ToSamples(group));
        for (table::SampledItem& sample : samples) samples_.push_back(std::move(sample));
      }
    }
    std::optional<table::SampledItem> sample(std::move(samples_.front()));
    samples_.pop_front();
    return sample;
  }

 private:
  const std::shared_ptr<ShmControl> control_;
  const std::string table_;
  const absl::Duration timeout_;
  std::deque<table::SampledItem> samples_;
  absl::Status end_;
};

class ShmBatchStream final : public BatchStream {
 public:
  ShmBatchStream(std::shared_ptr<ShmControl> control, const std::string& table,
                 absl::Duration timeout)
      : control_(std::move(control)), table_(table), timeout_(timeout) {}
  ~ShmBatchStream() override { control_->Cancel(); }

  absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, absl::Time deadline) override {
    last_n_ = n;
    while (true) {
      if (!asked_) GR_RETURN_IF_ERROR(Ask(n, deadline));
      GR_ASSIGN_OR_RETURN(auto answer, control_->Next(GraceAfter(deadline)));
      if (!answer.has_value()) return absl::DeadlineExceededError(table::kRateLimiterTimeout);
      asked_ = false;
      // An earlier call's deadline may have been before this one's.
      if (absl::IsDeadlineExceeded(answer->failed) && !asked_for_timeout_ &&
          absl::Now() < deadline) {
        continue;
      }
      GR_RETURN_IF_ERROR(answer->failed);
      for (const batch::DrawnBatch& group : answer->groups) {
        if (group.columns.empty()) {
          return base::InvalidArgument("Item ", group.keys[0], " has no data.");
        }
      }
      return std::move(answer->groups);
    }
  }

  absl::Status Seed(uint64_t seed) override {
    seed_ = seed;
    return absl::OkStatus();
  }

  // One answer comes at a time: as many as the last call wanted, at most.
  void DrawAhead(int64_t n) override {
    // An error is also what the next call meets.
    if (!asked_) Ask(std::min(n, last_n_), absl::InfiniteFuture()).IgnoreError();
  }

  void Cancel() override { control_->Cancel(); }
  int64_t End() override {
    Cancel();
    int64_t drawn = 0;
    if (!std::exchange(asked_, false)) return drawn;
    const auto answer = control_->NextAfterCancel(absl::Now() + kLastAnswer);
    if (answer.ok() && answer->has_value()) {
      for (const batch::DrawnBatch& group : (*answer)->groups) drawn += group.size();
    }
    return drawn;
  }

 private:
  // The server keeps the deadline, and a late answer is one for the next call.
  static absl::Time GraceAfter(absl::Time deadline) { return deadline + absl::Milliseconds(50); }

  absl::Status Ask(int64_t n, absl::Time deadline) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    asked_for_timeout_ = timeout_ < left;
    shm::DrawRequest request;
    request.table = table_;
    request.n = n;
    request.once = true;
    request.seed = std::exchange(seed_, std::nullopt);
    request.timeout = std::min(timeout_, left);
    GR_RETURN_IF_ERROR(control_->Request(std::move(request)));
    asked_ = true;
    return absl::OkStatus();
  }

  const std::shared_ptr<ShmControl> control_;
  const std::string table_;
  const absl::Duration timeout_;  // Of every draw.
  std::optional<uint64_t> seed_;
  int64_t last_n_ = 1;
  bool asked_ = false;              // An answer is on its way.
  bool asked_for_timeout_ = false;  // It takes no longer than `timeout_`, which ends the stream.
};

}  // namespace

std::unique_ptr<SampleStream> NewShmSampleStream(std::shared_ptr<ShmControl> control,
                                                 const std::string& table,
                                                 absl::Duration rate_limiter_timeout) {
  return std::make_unique<ShmSampleStream>(std::move(control), table, rate_limiter_timeout);
}

std::unique_ptr<BatchStream> NewShmBatchStream(std::shared_ptr<ShmControl> control,
                                               const std::string& table,
                                               absl::Duration rate_limiter_timeout) {
  return std::make_unique<ShmBatchStream>(std::move(control), table, rate_limiter_timeout);
}

}  // namespace gear_reverb::client
