#include "native/client/batch_stream_of_samples.h"

#include <deque>
#include <utility>

#include "native/client/batch_sampler_fixture.h"

namespace gear_reverb::client {
namespace {

// A stream that gives the items it has, and counts what was asked for.
class FakeSamples final : public SampleStream {
 public:
  FakeSamples(std::deque<table::SampledItem>* items, int64_t* requested)
      : items_(items), requested_(requested) {}
  void Request(int64_t n) override { *requested_ += n; }
  absl::StatusOr<std::optional<table::SampledItem>> Next(absl::Time) override {
    if (items_->empty()) return std::nullopt;
    std::optional<table::SampledItem> item(std::move(items_->front()));
    items_->pop_front();
    return item;
  }

 private:
  std::deque<table::SampledItem>* const items_;
  int64_t* const requested_;
};

class BatchStreamOfSamplesTest : public ::testing::Test {
 protected:
  void Add(int n) {
    for (int i = 0; i < n; ++i)
      items_.push_back({{1, 1, 1, UINT32_MAX, {}, Steps({1})}, 1, 1, false});
  }
  // Items that a draw gave; -1 if it had none by the deadline.
  int64_t Draw(int64_t n) {
    const auto groups = stream_->Draw(n, Soon());
    if (absl::IsDeadlineExceeded(groups.status())) return -1;
    EXPECT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->size(), 1u);
    return static_cast<int64_t>((*groups)[0].size());
  }

  std::deque<table::SampledItem> items_;
  int64_t requested_ = 0;
  const std::unique_ptr<BatchStream> stream_ =
      NewBatchStreamOfSamples(std::make_unique<FakeSamples>(&items_, &requested_));
};

TEST_F(BatchStreamOfSamplesTest, AsksForWhatIsMissingOnce) {
  EXPECT_EQ(Draw(5), -1);
  EXPECT_EQ(requested_, 5);
  Add(3);
  EXPECT_EQ(Draw(5), 3);
  EXPECT_EQ(requested_, 5);
  Add(5);
  EXPECT_EQ(Draw(5), 5);
  EXPECT_EQ(requested_, 8);
  EXPECT_TRUE(absl::IsUnimplemented(stream_->Seed(1)));
}

TEST_F(BatchStreamOfSamplesTest, GivesNoMoreThanIsAskedFor) {
  EXPECT_EQ(Draw(6), -1);
  Add(4);
  EXPECT_EQ(Draw(3), 3);
  EXPECT_EQ(Draw(1), 1);
}

TEST_F(BatchStreamOfSamplesTest, AsksAheadInHalves) {
  stream_->DrawAhead(8);
  EXPECT_EQ(requested_, 8);
  Add(2);
  EXPECT_EQ(Draw(2), 2);
  stream_->DrawAhead(8);
  EXPECT_EQ(requested_, 8);  // Six of them are on their way.
  Add(4);
  EXPECT_EQ(Draw(4), 4);
  stream_->DrawAhead(8);
  EXPECT_EQ(requested_, 14);
}

TEST_F(BatchStreamOfSamplesTest, CountsWhatComesAfterItWasCancelled) {
  EXPECT_EQ(Draw(3), -1);
  Add(2);
  stream_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream_->Draw(1, Late()).status()));
  EXPECT_EQ(stream_->End(), 2);
  EXPECT_EQ(stream_->End(), 2);
}

}  // namespace
}  // namespace gear_reverb::client
