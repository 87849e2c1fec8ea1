#include <algorithm>
#include <thread>
#include <vector>

#include "native/client/batch_sampler_fixture.h"

namespace gear_reverb::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(BatchSamplerTest, BatchesComeInTheOrderOfDrawing) {
  for (const int64_t prefetch : {0, 1, 3}) {
    Start();
    InsertMany(0, 9);
    auto sampler = MakeSampler(3, prefetch);
    for (int32_t i = 0; i < 9; i += 3) {
      const auto batch = sampler->Next(Late());
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_THAT(ValuesOf(**batch), ElementsAre(i, i + 1, i + 2));
    }
  }
}

TEST_F(BatchSamplerTest, OptionsAreChecked) {
  const auto create = [&](int64_t size, int64_t prefetch) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request.size = size;
    options.prefetch = prefetch;
    const auto sampler = BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
    return std::string(sampler.status().message());
  };
  EXPECT_THAT(create(0, 0), HasSubstr("batch_size"));
  EXPECT_THAT(create(1, -1), HasSubstr("prefetch"));
}

TEST_F(BatchSamplerTest, DrawsNoFurtherAheadThanItMay) {
  InsertMany(0, 100);
  auto sampler = MakeSampler(2, 3);
  EXPECT_EQ(samples(), 0);
  ASSERT_TRUE(sampler->Next(Late()).ok());
  const absl::Time end = Late();
  while (samples() < 8 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(samples(), 8);
  sampler->Close();
  EXPECT_EQ(unused(), 6);
}

TEST_F(BatchSamplerTest, ATimeoutKeepsWhatWasDrawn) {
  for (const int64_t prefetch : {0, 2}) {
    Start();
    InsertMany(0, 2);
    auto sampler = MakeSampler(3, prefetch);
    const auto late = sampler->Next(Soon());
    EXPECT_TRUE(absl::IsDeadlineExceeded(late.status()));
    EXPECT_EQ(late.status().message(), table::kRateLimiterTimeout);
    InsertMany(2, 3);
    const auto batch = sampler->Next(Late());
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT(ValuesOf(**batch), ElementsAre(0, 1, 2));
  }
}

TEST_F(BatchSamplerTest, WhatWasDrawnForAnUnfinishedBatchIsUnused) {
  InsertMany(0, 2);
  auto sampler = MakeSampler(3, 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(sampler->Next(Soon()).status()));
  sampler = nullptr;
  EXPECT_EQ(unused(), 2);
}

TEST_F(BatchSamplerTest, ItemsThatMakeNoBatchAreLostAndTheNextBatchComes) {
  for (const int64_t prefetch : {0, 2}) {
    Start();
    Insert({1});
    Insert({1, 2});
    InsertMany(5, 7);
    auto sampler = MakeSampler(2, prefetch);
    EXPECT_TRUE(absl::IsInvalidArgument(sampler->Next(Late()).status()));
    const auto batch = sampler->Next(Late());
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT(ValuesOf(**batch), ElementsAre(5, 6));
    sampler = nullptr;
    EXPECT_EQ(unused(), 2);
  }
}

TEST_F(BatchSamplerTest, CloseEndsWaitingCalls) {
  for (const int64_t prefetch : {0, 2}) {
    Start();
    auto sampler = MakeSampler(2, prefetch);
    absl::Status status;
    std::thread waiting([&] { status = sampler->Next(absl::InfiniteFuture()).status(); });
    while (table().info().waiting_samples == 0) absl::SleepFor(absl::Milliseconds(1));
    sampler->Close();
    waiting.join();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_TRUE(absl::IsFailedPrecondition(sampler->Next(Late()).status()));
  }
}

TEST_F(BatchSamplerTest, AServerThatComesBackIsUsedAgain) {
  InsertMany(0, 1);
  auto sampler = MakeSampler(1, 0);
  ASSERT_TRUE(sampler->Next(Late()).ok());
  service_->Stop();
  const auto stopped = service_;
  EXPECT_TRUE(absl::IsDeadlineExceeded(sampler->Next(Soon()).status()));
  Start();
  InsertMany(7, 8);
  const auto batch = sampler->Next(Late());
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(ValuesOf(**batch), ElementsAre(7));
}

TEST_F(BatchSamplerTest, SeedsMakeDrawsRepeatable) {
  Start(/*max_times_sampled=*/0, selectors::UniformOptions{});
  InsertMany(0, 50);
  const auto draw = [&](uint64_t seed) {
    auto sampler = MakeSampler(20, 0, seed);
    std::vector<int32_t> all;
    for (int i = 0; i < 2; ++i) {
      const auto batch = sampler->Next(Late());
      EXPECT_TRUE(batch.ok());
      for (const int32_t value : ValuesOf(**batch)) all.push_back(value);
      EXPECT_TRUE(table().Sample(1).ok());
    }
    return all;
  };
  const auto first = draw(5);
  EXPECT_EQ(draw(5), first);
  EXPECT_NE(draw(6), first);
}

TEST_F(BatchSamplerTest, ManyThreadsTakeEveryItemOnce) {
  for (const int64_t prefetch : {0, 2}) {
    Start();
    InsertMany(0, 200);
    auto sampler = MakeSampler(5, prefetch);
    std::vector<std::vector<int32_t>> taken(4);
    std::vector<std::thread> threads;
    for (auto& values : taken) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          const auto batch = sampler->Next(Late());
          ASSERT_TRUE(batch.ok()) << batch.status();
          for (const int32_t value : ValuesOf(**batch)) values.push_back(value);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<int32_t> all;
    for (const auto& values : taken) all.insert(all.end(), values.begin(), values.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 200u);
    for (int32_t i = 0; i < 200; ++i) EXPECT_EQ(all[i], i);
  }
}

TEST_F(BatchSamplerTest, ASequenceEndsAfterSoManyItemsOverAnyNumberOfStreams) {
  for (const int64_t per_stream : {-1, 1, 3, 100}) {
    for (const int64_t prefetch : {0, 2}) {
      Start();
      key_ = 0;
      InsertMany(0, 9);
      const auto sampler = MakeSequence(2, {5, per_stream}, std::nullopt, prefetch);
      EXPECT_THAT(KeysUntilTheEnd(*sampler),
                  ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5)))
          << per_stream;
      EXPECT_TRUE(absl::IsOutOfRange(sampler->Next(Late()).status()));
      EXPECT_EQ(samples(), 5);
      EXPECT_EQ(unused(), 0);
    }
  }
}

TEST_F(BatchSamplerTest, ASequenceEndsWithTheRestWhenTheRateLimiterTimesOut) {
  InsertMany(0, 3);
  SequenceLimits limits;
  limits.rate_limiter_timeout = absl::Milliseconds(20);
  const auto sampler = MakeSequence(2, limits);
  EXPECT_THAT(KeysUntilTheEnd(*sampler), ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
}

TEST_F(BatchSamplerTest, APolledDrawGoesOnAfterADeadline) {
  const auto sampler = MakeSequence(2, {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(sampler->Next(Soon()).status()));
  InsertMany(0, 2);
  EXPECT_TRUE(sampler->Next(Late()).ok());
}

TEST_F(BatchSamplerTest, ABlockIsWhatIsThere) {
  InsertMany(0, 3);
  const auto sampler = MakeSequence(5, {}, kNoLimit);
  const auto block = sampler->Next(Late());
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_THAT((*block)->drawn.keys, ElementsAre(1, 2, 3));
}

TEST_F(BatchSamplerTest, ABlockHasAboutSoManyBytes) {
  Insert({1, 2, 3});
  for (int32_t i = 0; i < 4; ++i) Insert({i});
  const auto sampler = MakeSequence(5, {5}, 2 * sizeof(int32_t));
  EXPECT_THAT(KeysUntilTheEnd(*sampler),
              ElementsAre(ElementsAre(1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST_F(BatchSamplerTest, ABlockEndsWhereItemsAreNotAlike) {
  InsertMany(0, 2);
  const float step = 0.5;
  const tensor::TensorView view{
      tensor::DType::kFloat32, {1}, {reinterpret_cast<const std::byte*>(&step), sizeof(step)}};
  const auto chunk = storage::CopyToChunk(*memory::ProcessArena(), 1, {}, {view}).value();
  ASSERT_TRUE(table()
                  .InsertOrAssign({++key_,
                                   1.0,
                                   0,
                                   UINT32_MAX,
                                   {},
                                   storage::TrajectoryBuilder::SliceOf(chunk, 0, 1, false)})
                  .ok());
  Insert({7});
  const auto sampler = MakeSequence(4, {4}, kNoLimit);
  EXPECT_THAT(KeysUntilTheEnd(*sampler),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3), ElementsAre(4)));
}

}  // namespace
}  // namespace gear_reverb::client
