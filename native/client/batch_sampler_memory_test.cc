// Batch samplers and memory: where it runs out, and what a device is told of it.
#include <cstring>
#include <new>
#include <vector>

#include "native/base/status.h"
#include "native/client/batch_sampler_fixture.h"

namespace gear_reverb::client {
namespace {

using ::testing::ElementsAre;

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
                                absl::Span<const uint64_t>, absl::Time) override {
    return absl::UnimplementedError("");
  }
  absl::Status Reset(const std::string&, absl::Time) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::string> Checkpoint(absl::Time) override {
    return absl::UnimplementedError("");
  }
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

// A device that has no memory as often as it is told.
class ScarceDevice final : public device::Device {
 public:
  explicit ScarceDevice(int failures) : failures_(failures) {}
  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override;
  absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewDrawBackend(
      device::Stream stream) override {
    return twin_->NewDrawBackend(stream);
  }
  device::DeviceStats stats() const override { return twin_->stats(); }

 private:
  int failures_;
  const std::shared_ptr<device::Device> twin_ = device::NewCpuDevice();
};

class ScarceStream final : public device::GatherStream {
 public:
  ScarceStream(std::unique_ptr<device::GatherStream> twin, int* failures)
      : twin_(std::move(twin)), failures_(failures) {}
  void SetSources(std::shared_ptr<device::SegmentSource> memory,
                  std::shared_ptr<device::DeviceTier> tier) override {
    twin_->SetSources(std::move(memory), std::move(tier));
  }
  absl::StatusOr<std::shared_ptr<device::Output>> Gather(
      device::GatherPlan plan, uint64_t bytes, std::shared_ptr<const void> lease) override {
    GR_RETURN_IF_ERROR(Fail());
    return twin_->Gather(std::move(plan), bytes, std::move(lease));
  }
  absl::StatusOr<std::shared_ptr<device::Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void> lease,
      absl::FunctionRef<absl::Status(std::byte*)> write) override {
    GR_RETURN_IF_ERROR(Fail());
    return twin_->Write(bytes, source_bytes, std::move(lease), write);
  }

 private:
  absl::Status Fail() {
    if (*failures_ == 0) return absl::OkStatus();
    --*failures_;
    return absl::ResourceExhaustedError("no memory");
  }

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
  const auto sampler = *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
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

TEST_F(BatchSamplerTest, WithoutMemoryNoDrawOfTheDeviceIsLost) {
  Start(/*max_times_sampled=*/0);
  InsertMany(0, 6);
  BatchSamplerOptions options;
  options.table = "t";
  options.request.size = 3;
  options.request.max_bytes = kNoLimit;
  options.device = std::make_shared<ScarceDevice>(2);
  options.device_draws = device::Choice::kDraws;
  const auto sampler = *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  EXPECT_TRUE(sampler->Next(Late()).ok());
  EXPECT_EQ(samples(), 3);
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
  const auto sampler = *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  EXPECT_TRUE(absl::IsResourceExhausted(sampler->Next(Late()).status()));
  sampler->Close();
  EXPECT_EQ(unused(), 3);
}

// A device that notes where it is told that pieces lie.
struct TwinWithNotes final : device::Device {
  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override;
  absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewDrawBackend(
      device::Stream stream) override {
    return twin->NewDrawBackend(stream);
  }
  device::DeviceStats stats() const override { return twin->stats(); }
  std::shared_ptr<device::DeviceTier> TierOf(const std::shared_ptr<table::Table>& table) override {
    return twin->TierOf(table);
  }

  const std::shared_ptr<device::Device> twin = device::NewCpuDevice();
  std::vector<const void*> memories;
  std::vector<std::shared_ptr<device::DeviceTier>> tiers;
};

class NotedStream final : public device::GatherStream {
 public:
  NotedStream(TwinWithNotes* notes, std::unique_ptr<device::GatherStream> twin)
      : notes_(*notes), twin_(std::move(twin)) {}
  void SetSources(std::shared_ptr<device::SegmentSource> memory,
                  std::shared_ptr<device::DeviceTier> tier) override {
    notes_.memories.push_back(memory->memory());
    notes_.tiers.push_back(tier);
    twin_->SetSources(std::move(memory), std::move(tier));
  }
  absl::StatusOr<std::shared_ptr<device::Output>> Gather(
      device::GatherPlan plan, uint64_t bytes, std::shared_ptr<const void> lease) override {
    return twin_->Gather(std::move(plan), bytes, std::move(lease));
  }
  absl::StatusOr<std::shared_ptr<device::Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void> lease,
      absl::FunctionRef<absl::Status(std::byte*)> write) override {
    return twin_->Write(bytes, source_bytes, std::move(lease), write);
  }

 private:
  TwinWithNotes& notes_;
  const std::unique_ptr<device::GatherStream> twin_;
};

absl::StatusOr<std::unique_ptr<device::GatherStream>> TwinWithNotes::NewStream(size_t kept) {
  return std::make_unique<NotedStream>(this, *twin->NewStream(kept));
}

TEST_F(BatchSamplerTest, ADeviceIsToldWhereTheServersMemoryIsAndOfANewServersToo) {
  const auto device = std::make_shared<TwinWithNotes>();
  BatchSamplerOptions options;
  options.table = "t";
  options.request.size = 2;
  options.request.max_bytes = kNoLimit;
  options.device = device;
  std::vector<const void*> arenas;
  std::vector<std::shared_ptr<device::DeviceTier>> tiers;
  const auto start = [&](bool on_device) {
    Start(1, selectors::FifoOptions{}, {on_device, 0});
    InsertMany(0, 4);
    arenas.push_back(service_->shared_arena().get());
    tiers.push_back(device->TierOf(service_->tables()[0]));
  };
  start(/*on_device=*/true);
  const auto first = service_;  // Its arena's address stays its own.
  const auto sampler = *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  ASSERT_TRUE(sampler->Next(Late()).ok());
  ASSERT_TRUE(sampler->Next(Late()).ok());
  first->Stop();
  start(/*on_device=*/false);
  ASSERT_TRUE(sampler->Next(Late()).ok());
  sampler->Close();
  EXPECT_THAT(device->memories, ::testing::ElementsAreArray(arenas));
  EXPECT_THAT(device->tiers, ::testing::ElementsAreArray(tiers));
  EXPECT_NE(tiers[0], nullptr);
  EXPECT_EQ(tiers[1], nullptr);
}

}  // namespace
}  // namespace gear_reverb::client
