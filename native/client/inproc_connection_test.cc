#include "native/client/inproc_connection.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/base/mutex.h"
#include "native/client/sampler.h"

namespace gear_reverb::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Collects a stream's events.
class Recorder {
 public:
  writer::InsertStreamEvents Events() {
    return {[this](absl::Span<const uint64_t> keys) {
              base::MutexLock lock(&mutex_);
              confirmed_.insert(confirmed_.end(), keys.begin(), keys.end());
              changed_.NotifyAll();
            },
            [this](absl::Status status) {
              base::MutexLock lock(&mutex_);
              end_ = std::move(status);
              changed_.NotifyAll();
            }};
  }
  std::vector<uint64_t> WaitForConfirmed(size_t n) {
    base::MutexLock lock(&mutex_);
    changed_.WaitUntil(&mutex_, absl::Now() + absl::Seconds(20),
                       [&] { return confirmed_.size() >= n || end_.has_value(); });
    return confirmed_;
  }
  absl::Status WaitForEnd() {
    base::MutexLock lock(&mutex_);
    changed_.WaitUntil(&mutex_, absl::Now() + absl::Seconds(20), [&] { return end_.has_value(); });
    return end_.value_or(absl::DeadlineExceededError("no end"));
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<uint64_t> confirmed_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

class InprocConnectionTest : public ::testing::Test {
 protected:
  InprocConnectionTest() { Start(/*max_size=*/100); }

  void Start(int64_t max_size, rate_limiter::RateLimiterOptions limiter = {1, 1, -1e9, 1e9}) {
    table::TableOptions options;
    options.name = "t";
    options.sampler = selectors::FifoOptions{};
    options.remover = selectors::FifoOptions{};
    options.max_size = max_size;
    options.rate_limiter = limiter;
    service_ =
        *service::ReplayService::Create({*table::Table::Create(std::move(options))}, nullptr);
    connection_ = std::make_shared<InprocConnection>(service_);
  }

  // An item of one int32 step with value `key`, in a chunk of its own.
  static writer::NewItem MakeItem(uint64_t key, const std::string& table = "t") {
    const auto value = static_cast<int32_t>(key);
    const tensor::TensorView view{
        tensor::DType::kInt32, {1}, {reinterpret_cast<const std::byte*>(&value), sizeof(value)}};
    storage::TrajectoryBuilder trajectory;
    trajectory.columns.push_back(
        {{{*storage::CopyToChunk(*memory::ProcessArena(), key, {}, {view}), 0, 1, 0}}, false});
    return {key, table, 1.0, std::move(trajectory).Build()};
  }

  static int32_t ValueOf(const table::SampledItem& sample) {
    int32_t value;
    storage::Gather(sample.item.trajectory->columns[0], reinterpret_cast<std::byte*>(&value));
    return value;
  }

  std::unique_ptr<Sampler> MakeSampler(SamplerOptions options) {
    options.table = "t";
    return *Sampler::Create(
        [this](absl::Time) -> absl::StatusOr<std::shared_ptr<Connection>> { return connection_; },
        options);
  }

  std::shared_ptr<service::ReplayService> service_;
  std::shared_ptr<InprocConnection> connection_;
};

TEST_F(InprocConnectionTest, ItemsAreConfirmedAndTheirBytesAreTheServersOwn) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  writer::NewItem item = MakeItem(41);
  const storage::ChunkPtr sent = item.trajectory->columns[0].slices[0].chunk;
  ASSERT_TRUE(stream->Send(std::move(item), {}).ok());
  EXPECT_THAT(recorder.WaitForConfirmed(1), ElementsAre(41));
  const auto sample = MakeSampler({})->Next();
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(ValueOf(**sample), 41);
  EXPECT_NE((*sample)->item.trajectory->columns[0].slices[0].chunk, sent);
}

TEST_F(InprocConnectionTest, CloseEndsWithOkOnceAllIsConfirmed) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  for (uint64_t key = 1; key <= 50; ++key) ASSERT_TRUE(stream->Send(MakeItem(key), {}).ok());
  stream->Close();
  EXPECT_TRUE(recorder.WaitForEnd().ok());
  EXPECT_EQ(recorder.WaitForConfirmed(50).size(), 50u);
}

TEST_F(InprocConnectionTest, AnUnknownTableEndsTheStream) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  ASSERT_TRUE(stream->Send(MakeItem(1, "nowhere"), {}).ok());
  const absl::Status end = recorder.WaitForEnd();
  EXPECT_TRUE(absl::IsNotFound(end));
  EXPECT_THAT(std::string(end.message()), HasSubstr("nowhere was not found"));
  EXPECT_FALSE(stream->Send(MakeItem(2), {}).ok());
}

TEST_F(InprocConnectionTest, KeepingAChunkThatWasNotSentEndsTheStream) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  ASSERT_TRUE(stream->Send(MakeItem(1), {999}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.WaitForEnd()));
}

TEST_F(InprocConnectionTest, SamplerGivesWhatWasAskedForAndEnds) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  ASSERT_TRUE(stream->Send(MakeItem(7), {}).ok());
  auto sampler = MakeSampler({.table = "t", .max_samples = 5, .max_in_flight = 2});
  for (int i = 1; i <= 5; ++i) {
    const auto sample = sampler->Next();
    ASSERT_TRUE(sample.ok() && sample->has_value());
    EXPECT_EQ((*sample)->item.times_sampled, i);
  }
  const auto end = sampler->Next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST_F(InprocConnectionTest, DrawsNoMoreThanIsInFlight) {
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  ASSERT_TRUE(stream->Send(MakeItem(7), {}).ok());
  auto sampler = MakeSampler({.table = "t", .max_samples = 100, .max_in_flight = 3});
  ASSERT_TRUE(sampler->Next().ok());
  sampler = nullptr;
  EXPECT_EQ(service_->tables()[0]->info().counts.samples, 3);
}

TEST_F(InprocConnectionTest, ALimiterTimeoutHasReverbsText) {
  auto sampler = MakeSampler({.table = "t", .rate_limiter_timeout = absl::Milliseconds(20)});
  const auto sample = sampler->Next();
  EXPECT_TRUE(absl::IsDeadlineExceeded(sample.status()));
  EXPECT_EQ(sample.status().message(), table::kRateLimiterTimeout);
}

TEST_F(InprocConnectionTest, ALimiterTimeoutLeavesTheSamplerUsable) {
  auto sampler = MakeSampler({.rate_limiter_timeout = absl::Milliseconds(20)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(sampler->Next().status()));
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  ASSERT_TRUE(stream->Send(MakeItem(3), {}).ok());
  auto sample = sampler->Next();
  while (absl::IsDeadlineExceeded(sample.status())) sample = sampler->Next();
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(ValueOf(**sample), 3);
}

TEST_F(InprocConnectionTest, StoppingTheServiceEndsWaitingCalls) {
  setenv("GEAR_REVERB_CONNECT_TIMEOUT", "0", 1);
  auto sampler = MakeSampler({});
  absl::Status status;
  std::thread waiting([&] { status = sampler->Next().status(); });
  Recorder recorder;
  auto stream = connection_->OpenInsertStream(recorder.Events());
  service_->Stop();
  waiting.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ASSERT_TRUE(stream->Send(MakeItem(1), {}).ok());
  EXPECT_TRUE(absl::IsUnavailable(recorder.WaitForEnd()));
  EXPECT_TRUE(absl::IsUnavailable(connection_->Reset("t", absl::InfiniteFuture())));
  unsetenv("GEAR_REVERB_CONNECT_TIMEOUT");
}

TEST_F(InprocConnectionTest, WritersAndSamplersInManyThreads) {
  Start(/*max_size=*/1000);
  constexpr int kThreads = 3;
  constexpr int kItems = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Recorder recorder;
      auto stream = connection_->OpenInsertStream(recorder.Events());
      for (int i = 0; i < kItems; ++i) {
        ASSERT_TRUE(stream->Send(MakeItem(1 + t * kItems + i), {}).ok());
      }
      EXPECT_EQ(recorder.WaitForConfirmed(kItems).size(), static_cast<size_t>(kItems));
    });
    threads.emplace_back([&] {
      auto sampler = MakeSampler({.table = "t", .max_samples = kItems, .max_in_flight = 8});
      for (int i = 0; i < kItems; ++i) {
        const auto sample = sampler->Next();
        ASSERT_TRUE(sample.ok());
        EXPECT_EQ(static_cast<uint64_t>(ValueOf(**sample)), (*sample)->item.key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service_->tables()[0]->size(), kThreads * kItems);
}

TEST(LocalServices, AreFoundByTokenUntilTheyStop) {
  table::TableOptions options;
  options.name = "t";
  options.max_size = 1;
  auto service = *service::ReplayService::Create({*table::Table::Create(options)}, nullptr);
  EXPECT_EQ(service->token().size(), 16u);
  EXPECT_EQ(service::FindLocalService(service->token()), service);
  EXPECT_EQ(service::FindLocalService("0123456789abcdef"), nullptr);
  EXPECT_EQ(service::FindLocalService(""), nullptr);
  const std::string token = service->token();
  service->Stop();
  EXPECT_EQ(service::FindLocalService(token), nullptr);
}

}  // namespace
}  // namespace gear_reverb::client
