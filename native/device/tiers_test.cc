#include "native/device/tiers.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "native/batch/collate.h"
#include "native/device/batch_plan.h"
#include "native/device/device.h"
#include "native/device/device_tier_test_util.h"

namespace gear_reverb::device {
namespace {

using batch::Int32Chunk;

TEST(TiersTest, ATableHasOneTierOfADeviceIfItIsPlacedThere) {
  const auto device = NewCpuDevice();
  EXPECT_EQ(device->TierOf(TableOf(1)), nullptr);
  auto table = TableOf(1, {true, 1000});
  const auto tier = device->TierOf(table);
  ASSERT_NE(tier, nullptr);
  EXPECT_EQ(device->TierOf(table), tier);
  EXPECT_NE(NewCpuDevice()->TierOf(table), tier);
  ASSERT_EQ(device->stats().tiers.size(), 1u);
  EXPECT_EQ(device->stats().tiers[0].limit_bytes, 1000u);
}

TEST(TiersTest, ATierGoesWithItsTable) {
  const auto device = NewCpuDevice();
  auto table = TableOf(1, {true, 0});
  const std::weak_ptr<DeviceTier> tier = device->TierOf(table);
  EXPECT_FALSE(tier.expired());
  table = nullptr;
  EXPECT_TRUE(tier.expired());
  EXPECT_TRUE(device->stats().tiers.empty());
}

TEST(TiersTest, TablesThatShareAChunkHaveACopyEach) {
  const auto device = NewCpuDevice();
  const std::shared_ptr<table::Table> tables[] = {TableOf(5, {true, 0}), TableOf(5, {true, 0})};
  const auto chunk = Int32Chunk({1, 2, 3});
  const std::byte* const block = chunk->columns()[0].data.data();
  for (const auto& table : tables) {
    ASSERT_TRUE(table->InsertOrAssign({1, 1.0, 0, UINT32_MAX, {}, ItemOf({chunk})}).ok());
    device->TierOf(table)->WaitUntilSettled();
  }
  EXPECT_NE(device->TierOf(tables[0])->Find(block), device->TierOf(tables[1])->Find(block));
  tables[0]->Reset();
  device->TierOf(tables[0])->WaitUntilSettled();
  EXPECT_EQ(device->TierOf(tables[0])->Find(block), nullptr);
  EXPECT_NE(device->TierOf(tables[1])->Find(block), nullptr);
}

// A gather through the tier, against one without.
void ExpectEqualBatch(const batch::DrawnBatch& drawn, GatherStream& stream) {
  const auto layout = batch::Plan(drawn, batch::Ragged::kPack, size_t{1} << 30);
  ASSERT_TRUE(layout.ok()) << layout.status();
  BatchPlan plan = PlanBatch(drawn, *layout, {});
  std::vector<std::byte> expected(plan.output_bytes);
  GatherOnCpu(plan.gather.list(), expected.data());
  const auto output = stream.Gather(plan.gather, plan.output_bytes, drawn.lease);
  ASSERT_TRUE(output.ok()) << output.status();
  for (const OutputArray& column : plan.columns) {
    ASSERT_EQ(std::memcmp((*output)->data() + column.offset, expected.data() + column.offset,
                          column.bytes),
              0);
  }
}

// One step of a table's life: chunks that items share, new trajectories, deletions, resets.
class Life {
 public:
  Life(std::shared_ptr<table::Table> table, uint64_t seed)
      : table_(std::move(table)), random_(seed) {}

  void Step() {
    const uint64_t what = random_() % 100;
    if (what == 0) return table_->Reset();
    if (what < 20) {
      const uint64_t key = random_() % 64;
      return table_->MutateItems({}, {key}).IgnoreError();
    }
    if (what < 30) {
      const table::KeyWithPriority update{random_() % 64, 2.0};
      return table_->MutateItems({update}, {}).IgnoreError();
    }
    if (chunks_.size() < 4 || random_() % 2 == 0) {
      std::vector<int32_t> values(1 + random_() % 300);
      for (int32_t& value : values) value = static_cast<int32_t>(random_());
      chunks_.push_back(Int32Chunk(values));
      if (chunks_.size() > 8) chunks_.erase(chunks_.begin());
    }
    std::vector<storage::ChunkPtr> chosen;
    for (uint64_t n = 1 + random_() % 3; n > 0; --n) {
      chosen.push_back(chunks_[random_() % chunks_.size()]);
    }
    ASSERT_TRUE(
        table_->InsertOrAssign({random_() % 64, 1.0, 0, UINT32_MAX, {}, ItemOf(chosen)}).ok());
  }

 private:
  const std::shared_ptr<table::Table> table_;
  std::mt19937_64 random_;
  std::vector<storage::ChunkPtr> chunks_;
};

TEST(TiersTest, BatchesAreTheSameWithTheTierWhateverHappens) {
  for (const uint64_t limit : {0, 300, 6000}) {
    const auto device = NewCpuDevice();
    const auto table = TableOf(40, {true, limit});
    const auto stream = *device->NewStream(2);
    stream->SetSources(nullptr, device->TierOf(table));
    Life life(table, limit + 1);
    for (int step = 0; step < 3000; ++step) {
      life.Step();
      if (step % 50 == 0) device->TierOf(table)->WaitUntilSettled();
      if (step % 7 != 0 || table->size() == 0) continue;
      auto drawn = batch::Flatten(*table->Sample(20));
      for (const batch::DrawnBatch& group : *drawn) ExpectEqualBatch(group, *stream);
    }
    EXPECT_GT(device->stats().device_bytes, 0u);
    table->Reset();
    device->TierOf(table)->WaitUntilSettled();
    const TierStats stats = device->TierOf(table)->stats();
    EXPECT_EQ(stats.resident_bytes + stats.waiting_bytes + stats.overflow_bytes, 0u);
  }
}

TEST(TiersTest, BatchesAreTheSameWhileTheTableChanges) {
  const auto device = NewCpuDevice();
  const auto table = TableOf(40, {true, 6000});
  const auto tier = device->TierOf(table);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    Life life(table, 5);
    for (int step = 0; step < 5000; ++step) life.Step();
    done = true;
  });
  const auto stream = *device->NewStream(2);
  stream->SetSources(nullptr, tier);
  while (!done) {
    if (table->size() == 0) continue;
    const auto samples = table->Sample(10, absl::Now() + absl::Milliseconds(10));
    if (!samples.ok()) continue;
    auto drawn = batch::Flatten(*samples);
    for (const batch::DrawnBatch& group : *drawn) ExpectEqualBatch(group, *stream);
  }
  writer.join();
}

}  // namespace
}  // namespace gear_reverb::device
