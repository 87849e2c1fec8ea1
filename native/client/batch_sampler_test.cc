#include "native/client/batch_sampler.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/client/batch_stream_of_samples.h"
#include "native/client/inproc_connection.h"

namespace gear_reverb::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kNoLimit = size_t{1} << 40;

absl::Time Soon() { return absl::Now() + absl::Milliseconds(30); }
absl::Time Late() { return absl::Now() + absl::Seconds(20); }

storage::TrajectoryPtr Steps(const std::vector<int32_t>& values) {
  const tensor::TensorView view{
      tensor::DType::kInt32,
      {static_cast<int64_t>(values.size())},
      {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(int32_t)}};
  const auto chunk = storage::CopyToChunk(*memory::ProcessArena(), 1, {}, {view}).value();
  return storage::TrajectoryBuilder::SliceOf(chunk, 0, static_cast<int32_t>(values.size()), false);
}

std::vector<int32_t> ValuesOf(const Batch& batch) {
  std::vector<int32_t> values(batch.layout.columns[0].bytes / sizeof(int32_t));
  std::memcpy(values.data(), batch.buffer.get() + batch.layout.columns[0].offset,
              batch.layout.columns[0].bytes);
  return values;
}

// A table that gives each item once, in order of insertion, unless told otherwise.
class BatchSamplerTest : public ::testing::Test {
 protected:
  void Start(int32_t max_times_sampled = 1,
             selectors::SelectorOptions sampler = selectors::FifoOptions{}) {
    table::TableOptions options;
    options.name = "t";
    options.sampler = sampler;
    options.remover = selectors::FifoOptions{};
    options.max_size = 1000;
    options.max_times_sampled = max_times_sampled;
    options.rate_limiter = {1, 1, -1e9, 1e9};
    service_ =
        *service::ReplayService::Create({*table::Table::Create(std::move(options))}, nullptr);
    connection_ = std::make_shared<InprocConnection>(service_);
  }
  BatchSamplerTest() { Start(); }

  void Insert(const std::vector<int32_t>& steps) {
    ASSERT_TRUE(table().InsertOrAssign({++key_, 1.0, 0, UINT32_MAX, {}, Steps(steps)}).ok());
  }
  void InsertMany(int32_t from, int32_t to) {
    for (int32_t i = from; i < to; ++i) Insert({i});
  }

  BatchSampler::Pointer MakeSampler(int64_t size, int64_t prefetch,
                                    std::optional<uint64_t> seed = std::nullopt) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request = {size, batch::Ragged::kError, kNoLimit, std::nullopt};
    options.prefetch = prefetch;
    options.seed = seed;
    return *BatchSampler::Create([this] { return Connect(); }, options);
  }
  BatchSampler::Pointer MakeSequence(int64_t size, const SequenceLimits& limits,
                                     std::optional<size_t> block_bytes = std::nullopt,
                                     int64_t prefetch = 0) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request = {size, batch::Ragged::kPack, kNoLimit, block_bytes};
    options.prefetch = prefetch;
    options.limits = limits;
    options.polled = true;
    return *BatchSampler::Create([this] { return Connect(); }, options);
  }
  // Keys are 1, 2, ... in the order of insertion.
  static std::vector<std::vector<uint64_t>> KeysUntilTheEnd(BatchSampler& sampler) {
    std::vector<std::vector<uint64_t>> keys;
    while (true) {
      const auto batch = sampler.Next(Late());
      if (!batch.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(batch.status())) << batch.status();
        return keys;
      }
      keys.push_back((*batch)->drawn.keys);
    }
  }
  absl::StatusOr<std::shared_ptr<Connection>> Connect() { return connection_; }

  table::Table& table() { return *service_->tables()[0]; }
  int64_t samples() { return table().info().counts.samples; }
  int64_t unused() { return table().info().num_unused_samples; }

  uint64_t key_ = 0;
  std::shared_ptr<service::ReplayService> service_;
  std::shared_ptr<Connection> connection_;
};

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
    const auto sampler = BatchSampler::Create([this] { return Connect(); }, options);
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

// A way to a server that finds no memory for what it draws.
class NoMemory final : public Connection {
 public:
  std::string data_plane() const override { return "none"; }
  bool usable() const override { return true; }
  absl::StatusOr<std::unique_ptr<BatchStream>> OpenBatchStream(const std::string&,
                                                               absl::Duration) override {
    class Stream final : public BatchStream {
      absl::StatusOr<std::vector<batch::DrawnBatch>> Draw(int64_t, absl::Time) override {
        throw std::bad_alloc();
      }
      void Cancel() override {}
    };
    return std::make_unique<Stream>();
  }
  std::unique_ptr<writer::InsertStream> OpenInsertStream(writer::InsertStreamEvents) override {
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<SampleStream>> OpenSampleStream(const std::string&,
                                                                 absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::Status MutatePriorities(const std::string&, absl::Span<const table::KeyWithPriority>,
                                absl::Span<const uint64_t>) override {
    return absl::UnimplementedError("");
  }
  absl::Status Reset(const std::string&) override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::string> Checkpoint() override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time) override {
    return absl::UnimplementedError("");
  }
};

TEST_F(BatchSamplerTest, WithoutMemoryACallFailsAndTheSamplerCloses) {
  connection_ = std::make_shared<NoMemory>();
  for (const int64_t prefetch : {0, 2}) {
    auto sampler = MakeSampler(2, prefetch);
    EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
    EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
    sampler->Close();
  }
}

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

// A device that has no memory as often as it is told.
class ScarceDevice final : public device::Device {
 public:
  explicit ScarceDevice(int failures) : failures_(failures) {}
  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override;
  device::DeviceStats stats() const override { return twin_->stats(); }

 private:
  int failures_;
  const std::shared_ptr<device::Device> twin_ = device::NewCpuDevice();
};

class ScarceStream final : public device::GatherStream {
 public:
  ScarceStream(std::unique_ptr<device::GatherStream> twin, int* failures)
      : twin_(std::move(twin)), failures_(failures) {}
  void AddSource(std::shared_ptr<memory::Arena> arena) override { twin_->AddSource(arena); }
  absl::StatusOr<std::shared_ptr<device::Output>> Gather(
      device::GatherPlan plan, uint64_t bytes, std::shared_ptr<const void> lease) override {
    if (*failures_ > 0) {
      --*failures_;
      return absl::ResourceExhaustedError("no memory");
    }
    return twin_->Gather(std::move(plan), bytes, std::move(lease));
  }

 private:
  const std::unique_ptr<device::GatherStream> twin_;
  int* const failures_;
};

absl::StatusOr<std::unique_ptr<device::GatherStream>> ScarceDevice::NewStream(size_t kept) {
  return std::make_unique<ScarceStream>(*twin_->NewStream(kept), &failures_);
}

TEST_F(BatchSamplerTest, WithoutMemoryOnTheDeviceNothingIsLost) {
  InsertMany(0, 6);
  BatchSamplerOptions options;
  options.table = "t";
  options.request.size = 3;
  options.request.max_bytes = kNoLimit;
  options.device = std::make_shared<ScarceDevice>(2);
  const auto sampler = *BatchSampler::Create([this] { return Connect(); }, options);
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  for (int first = 0; first < 6; first += 3) {
    const BatchPtr batch = *sampler->Next(Late());
    std::vector<int32_t> values(3);
    const OnDevice& made = *batch->on_device;
    std::memcpy(values.data(), made.output->data() + made.columns[0].offset, 12);
    EXPECT_THAT(values, ElementsAre(first, first + 1, first + 2));
  }
  sampler->Close();
  EXPECT_EQ(unused(), 0);
}

TEST_F(BatchSamplerTest, WhatIsKeptForLackOfMemoryIsReportedAtTheEnd) {
  InsertMany(0, 6);
  BatchSamplerOptions options;
  options.table = "t";
  options.request.size = 3;
  options.request.max_bytes = kNoLimit;
  options.device = std::make_shared<ScarceDevice>(1);
  const auto sampler = *BatchSampler::Create([this] { return Connect(); }, options);
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  sampler->Close();
  EXPECT_EQ(unused(), 3);
}

}  // namespace
}  // namespace gear_reverb::client
