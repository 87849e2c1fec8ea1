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

// When cancelled it still takes what is on its way, so that `End` counts what the server drew.
class BatchStreamOfSamples final : public BatchStream {
 public:
  explicit BatchStreamOfSamples(std::unique_ptr<SampleStream> samples)
      : samples_(std::move(samples)) {}

  absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t n, absl::Time deadline) override {
    Request(n);
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

  // In halves, so that a request is worth its message.
  void DrawAhead(int64_t n) override {
    if (requested_ <= n / 2) Request(n);
  }

  void Cancel() override { cancelled_.store(true); }
  int64_t End() override {
    Cancel();
    Drain();
    return drained_;
  }

 private:
  // So many are to be on their way.
  void Request(int64_t n) {
    if (n <= requested_) return;
    samples_->Request(n - requested_);
    requested_ = n;
  }

  absl::StatusOr<table::SampledItem> AwaitOne(absl::Time deadline) {
    // Long enough for the wait to ask for the host program's interrupt meanwhile.
    constexpr absl::Duration kLookForCancelEvery = absl::Milliseconds(250);
    while (true) {
      if (cancelled_.load()) {
        Drain();
        return absl::CancelledError("The batch stream was cancelled.");
      }
      const absl::Time slice_end = std::min(deadline, absl::Now() + kLookForCancelEvery);
      GR_ASSIGN_OR_RETURN(auto sample, samples_->Next(slice_end));
      if (sample.has_value()) {
        --requested_;
        return *std::move(sample);
      }
      if (slice_end == deadline) return absl::DeadlineExceededError(table::kRateLimiterTimeout);
    }
  }

  // Once: what has been drawn comes soon, and the rest is not waited for.
  void Drain() {
    constexpr absl::Duration kSilence = absl::Milliseconds(300), kDrain = absl::Seconds(1);
    const absl::Time end = absl::Now() + kDrain;
    while (requested_ > 0 && absl::Now() < end) {
      const auto sample = samples_->Next(absl::Now() + kSilence);
      if (!sample.ok() || !sample->has_value()) break;
      --requested_;
      ++drained_;
    }
    requested_ = 0;
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
