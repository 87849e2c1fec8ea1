#include "native/client/batch_stream_of_samples.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "native/base/status.h"
#include "native/table/table.h"

namespace gear_reverb::client {
namespace {

// When cancelled it still takes what is on its way, so that `held` counts what the server drew.
class BatchStreamOfSamples final : public BatchStream {
 public:
  explicit BatchStreamOfSamples(std::unique_ptr<SampleStream> samples)
      : samples_(std::move(samples)) {}

  absl::StatusOr<batch::DrawnBatch> Next(int64_t n, absl::Time deadline) override {
    // Long enough for the wait to ask for the host program's interrupt meanwhile.
    constexpr absl::Duration kLookForCancelEvery = absl::Milliseconds(250);
    constexpr absl::Duration kDrain = absl::Seconds(1);

    const int64_t missing = n - requested_ - held();
    if (missing > 0) {
      requested_ += missing;
      samples_->Request(missing);
    }
    absl::Time drain_until = absl::InfiniteFuture();
    while (held() < n) {
      const absl::Time now = absl::Now();
      if (cancelled_.load()) drain_until = std::min(drain_until, now + kDrain);
      if (now >= drain_until) return Cancelled();
      const absl::Time slice_end = std::min(deadline, now + kLookForCancelEvery);
      GR_ASSIGN_OR_RETURN(auto sample, samples_->Next(slice_end));
      if (sample.has_value()) {
        --requested_;
        items_.push_back(*std::move(sample));
      } else if (cancelled_.load()) {
        return Cancelled();
      } else if (slice_end == deadline) {
        return absl::DeadlineExceededError(table::kRateLimiterTimeout);
      }
    }
    // A smaller batch than the one before that was not finished leaves some over.
    std::vector<table::SampledItem> items(std::make_move_iterator(items_.begin()),
                                          std::make_move_iterator(items_.begin() + n));
    items_.erase(items_.begin(), items_.begin() + n);
    return batch::Flatten(std::move(items));
  }

  int64_t held() const override { return items_.size(); }
  void Cancel() override { cancelled_.store(true); }
  bool cancellable() const override { return true; }

 private:
  static absl::Status Cancelled() {
    return absl::CancelledError("The batch stream was cancelled.");
  }

  const std::unique_ptr<SampleStream> samples_;
  std::vector<table::SampledItem> items_;
  int64_t requested_ = 0;  // And not yet received.
  std::atomic<bool> cancelled_{false};
};

}  // namespace

std::unique_ptr<BatchStream> NewBatchStreamOfSamples(std::unique_ptr<SampleStream> samples) {
  return std::make_unique<BatchStreamOfSamples>(std::move(samples));
}

}  // namespace gear_reverb::client
