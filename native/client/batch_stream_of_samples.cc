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

  absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, int64_t ahead,
                                                      absl::Time deadline) override {
    Request(n, ahead);
    std::vector<table::SampledItem> items;
    GR_ASSIGN_OR_RETURN(items.emplace_back(), AwaitOne(deadline));
    while (items.size() < static_cast<size_t>(n)) {
      auto next = samples_->Next(absl::InfinitePast());
      if (!next.ok() || !next->has_value()) break;  // An error is there for the next call, too.
      --requested_;
      items.push_back(**std::move(next));
    }
    return batch::Flatten(std::move(items));
  }

  int64_t held() const override { return drained_; }
  void Cancel() override { cancelled_.store(true); }

 private:
  // What is to be ahead is asked for in halves, so that a request is worth its message.
  void Request(int64_t n, int64_t ahead) {
    if (requested_ >= n && requested_ > n + ahead / 2) return;
    const int64_t missing = n + ahead - requested_;
    if (missing <= 0) return;
    requested_ += missing;
    samples_->Request(missing);
  }

  absl::StatusOr<table::SampledItem> AwaitOne(absl::Time deadline) {
    constexpr absl::Duration kLookForCancelEvery = absl::Milliseconds(100);
    while (true) {
      if (cancelled_.load()) return Drain();
      const absl::Time slice_end = std::min(deadline, absl::Now() + kLookForCancelEvery);
      GR_ASSIGN_OR_RETURN(auto sample, samples_->Next(slice_end));
      if (sample.has_value()) {
        --requested_;
        return *std::move(sample);
      }
      if (slice_end == deadline) return absl::DeadlineExceededError(table::kRateLimiterTimeout);
    }
  }

  absl::Status Drain() {
    constexpr absl::Duration kSilence = absl::Milliseconds(100), kDrain = absl::Seconds(1);
    const absl::Time end = absl::Now() + kDrain;
    while (requested_ > 0 && absl::Now() < end) {
      GR_ASSIGN_OR_RETURN(const auto sample, samples_->Next(absl::Now() + kSilence));
      if (!sample.has_value()) break;
      --requested_;
      ++drained_;
    }
    return absl::CancelledError("The batch stream was cancelled.");
  }

  const std::unique_ptr<SampleStream> samples_;
  int64_t requested_ = 0;  // And not yet received.
  int64_t drained_ = 0;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

std::unique_ptr<BatchStream> NewBatchStreamOfSamples(std::unique_ptr<SampleStream> samples) {
  return std::make_unique<BatchStreamOfSamples>(std::move(samples));
}

}  // namespace gear_reverb::client
