// Batches that the twin draws by itself.
#include "native/client/resident_batches.h"

#include <thread>

#include "native/client/batch_sampler_fixture.h"

namespace gear_reverb::client {
namespace {

class ResidentBatchesTest : public BatchSamplerTest {
 protected:
  ResidentBatchesTest() { Start(/*max_times_sampled=*/0, selectors::UniformOptions{}); }

  BatchSampler::Pointer MakeResident(
      int64_t size, int64_t prefetch,
      std::shared_ptr<device::Device> device = device::NewCpuDevice()) {
    BatchSamplerOptions options;
    options.table = "t";
    options.request = {size, batch::Ragged::kError, kNoLimit, std::nullopt};
    options.prefetch = prefetch;
    options.device = std::move(device);
    options.device_draws = device::Choice::kDraws;
    return *BatchSampler::Create([this](absl::Time) { return Connect(); }, options);
  }
  std::unique_ptr<FixedBatches> MakeFixed(int64_t size) {
    FixedBatches::Options options;
    options.table = {"t", 7, device::NewCpuDevice(), {}};
    options.size = size;
    options.max_bytes = kNoLimit;
    return *FixedBatches::Create(service_, options);
  }
  static std::vector<int32_t> Column(const device::Output& output,
                                     const device::OutputArray& column) {
    std::vector<int32_t> values(column.bytes / sizeof(int32_t));
    std::memcpy(values.data(), output.data() + column.offset, column.bytes);
    return values;
  }
};

// Items are inserted as (i, -i), so a torn or freed one shows.
void ExpectWhole(const std::vector<int32_t>& values) {
  for (size_t i = 0; i < values.size(); i += 2) ASSERT_EQ(values[i], -values[i + 1]);
}

TEST_F(ResidentBatchesTest, FollowsTheTableWhileOthersWrite) {
  Insert({1, -1});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int32_t i = 2; !stop; ++i) {
      Insert({i, -i});
      if (i % 3 == 0) {
        ASSERT_TRUE(table().MutateItems({{key_, 2}}, {key_ - 1}).ok());
      }
    }
  });
  for (const int64_t prefetch : {0, 3}) {
    const auto sampler = MakeResident(8, prefetch);
    for (int i = 0; i < 200; ++i) {
      const auto batch = sampler->Next(Late());
      ASSERT_TRUE(batch.ok()) << batch.status();
      ASSERT_EQ((*batch)->size(), 8);
      const OnDevice& made = *(*batch)->on_device;
      ExpectWhole(Column(*made.output, made.columns[0]));
    }
    EXPECT_EQ(sampler->why_host_draws(), "");
  }
  stop = true;
  writer.join();
  EXPECT_EQ(samples() - unused(), 2 * 200 * 8);
}

TEST_F(ResidentBatchesTest, CloseEndsAWaitAndReportsWhatWasNeverTaken) {
  for (const int64_t prefetch : {0, 2}) {
    const auto sampler = MakeResident(4, prefetch);
    std::thread waiting([&] { EXPECT_FALSE(sampler->Next(absl::InfiniteFuture()).ok()); });
    while (table().info().waiting_samples == 0) std::this_thread::yield();
    sampler->Close();
    waiting.join();
  }
  Insert({5, -5});
  const auto sampler = MakeResident(4, 2);
  ASSERT_TRUE(sampler->Next(Late()).ok());
  while (samples() < 12) std::this_thread::yield();
  sampler->Close();
  EXPECT_EQ(samples() - unused(), 4);
}

TEST_F(ResidentBatchesTest, TheHostDrawsWhatTheDeviceCannot) {
  Insert({5, -5});
  const auto sampler = MakeResident(2, 0);
  ASSERT_TRUE((*sampler->Next(Late()))->on_device->draws.has_value());
  ASSERT_TRUE(table().MutateItems({}, {key_}).ok());
  Insert({1});
  ASSERT_TRUE((*sampler->Next(Late()))->on_device->draws.has_value());
  Insert({2, 3});
  ASSERT_TRUE(table().MutateItems({{key_, 1}}, {}).ok());
  for (int i = 0; i < 20; ++i) {
    const auto batch = sampler->Next(Late());
    if (batch.ok()) {
      EXPECT_FALSE((*batch)->on_device->draws.has_value());
    }
  }
  EXPECT_NE(sampler->why_host_draws(), "");
}

// The twin, with memory for batches alone.
class FullDevice final : public device::Device {
 public:
  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override {
    return twin_->NewStream(kept);
  }
  absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewDrawBackend(device::Stream) override {
    return absl::ResourceExhaustedError("The device is full.");
  }
  device::DeviceStats stats() const override { return twin_->stats(); }

 private:
  const std::shared_ptr<device::Device> twin_ = device::NewCpuDevice();
};

TEST_F(ResidentBatchesTest, TheHostDrawsWhereTheDeviceHasNoMemoryForIt) {
  Insert({5, -5});
  const auto sampler = MakeResident(2, 0, std::make_shared<FullDevice>());
  for (int i = 0; i < 3; ++i) {
    const auto batch = sampler->Next(Late());
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_FALSE((*batch)->on_device->draws.has_value());
  }
  EXPECT_EQ(sampler->why_host_draws(), "The device is full.");
}

TEST_F(ResidentBatchesTest, FixedBatchesAreWrittenInPlace) {
  Insert({1, -1});
  const auto fixed = MakeFixed(16);
  EXPECT_TRUE(absl::IsFailedPrecondition(fixed->Enqueue(nullptr)));
  std::shared_ptr<device::Output> output;
  for (int32_t i = 2; i < 1500; ++i) {  // Past the table's max_size.
    Insert({i, -i});
    ASSERT_TRUE(fixed->Prepare(Late(), nullptr).ok());
    ASSERT_TRUE(fixed->Enqueue(nullptr).ok());
    if (output == nullptr) output = fixed->output();
    ASSERT_EQ(fixed->output(), output);
    const auto values = Column(*output, fixed->arrays().columns[0]);
    ASSERT_EQ(values.size(), 32u);
    ExpectWhole(values);
  }
  EXPECT_EQ(fixed->table_size(), 1000);
  fixed->Close();
  EXPECT_TRUE(absl::IsFailedPrecondition(fixed->Prepare(Late(), nullptr)));
  EXPECT_EQ(samples(), 1498 * 16);
  EXPECT_EQ(unused(), 0);
}

}  // namespace
}  // namespace gear_reverb::client
