#include "native/device/device_tier.h"

#include <climits>
#include <cstring>
#include <map>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "native/base/status.h"
#include "native/device/device_tier_test_util.h"

namespace gear_reverb::device {
namespace {

using batch::Int32Chunk;

// Memory that is poisoned when it is new, and fails when told to.
class FakeTierMemory final : public TierMemory {
 public:
  ~FakeTierMemory() override { EXPECT_TRUE(blocks_.empty()); }
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes) override {
    base::MutexLock lock(&mutex_);
    if (bytes > most_bytes_) return absl::ResourceExhaustedError("no memory there");
    auto* const data = static_cast<std::byte*>(std::aligned_alloc(256, bytes));
    std::memset(data, 0xee, bytes);
    blocks_[data] = bytes;
    return data;
  }
  void Free(std::byte* data) override {
    base::MutexLock lock(&mutex_);
    EXPECT_EQ(blocks_.erase(data), 1u);
    std::free(data);
  }
  absl::Status Copy(absl::Span<const kernels::Copy> copies) override {
    base::MutexLock lock(&mutex_);
    if (failing_copies_ > 0) {
      --failing_copies_;
      return copy_error_;
    }
    for (const kernels::Copy& copy : copies) {
      auto block = blocks_.upper_bound(copy.destination);
      --block;
      EXPECT_LE(copy.destination + copy.bytes, block->first + block->second);
      std::memcpy(copy.destination, copy.source, copy.bytes);
      ++copied_;
    }
    return absl::OkStatus();
  }
  uint64_t default_limit_bytes() const override { return 4096; }

  int copied() {
    base::MutexLock lock(&mutex_);
    return copied_;
  }
  void Allow(uint64_t most_bytes) {
    base::MutexLock lock(&mutex_);
    most_bytes_ = most_bytes;
  }
  void FailCopies(int times, absl::Status error = absl::InternalError("the way is broken")) {
    base::MutexLock lock(&mutex_);
    failing_copies_ = times;
    copy_error_ = std::move(error);
  }

 private:
  base::Mutex mutex_;
  std::map<std::byte*, uint64_t> blocks_;
  uint64_t most_bytes_ = UINT64_MAX;
  int failing_copies_ = 0;
  absl::Status copy_error_;
  int copied_ = 0;
};

const std::byte* BlockOf(const storage::ChunkPtr& chunk) { return chunk->columns()[0].data.data(); }

struct TierFixture {
  explicit TierFixture(TierOptions options = {}, int64_t max_size = 100,
                       absl::Duration retry_after = absl::ZeroDuration())
      : table(TableOf(max_size)) {
    options.retry_after = retry_after;
    tier = std::make_shared<DeviceTier>("t", memory, options);
    table->Attach(tier);
  }

  // A chunk of 25 steps, 100 bytes.
  storage::ChunkPtr Chunk() {
    std::vector<int32_t> values(25);
    for (int32_t& value : values) value = next_value++;
    return Int32Chunk(values);
  }
  void Insert(uint64_t key, const std::vector<storage::ChunkPtr>& chunks) {
    ASSERT_TRUE(table->InsertOrAssign({key, 1.0, 0, UINT32_MAX, {}, ItemOf(chunks)}).ok());
  }
  void Delete(uint64_t key) { ASSERT_TRUE(table->MutateItems({}, {key}).ok()); }
  // Whether the device has the chunk, with the right bytes.
  bool Has(const storage::ChunkPtr& chunk) {
    tier->WaitUntilSettled();
    const DeviceCopyPtr copy = tier->Find(BlockOf(chunk));
    if (copy == nullptr) return false;
    EXPECT_NE(copy->data(), BlockOf(chunk));
    EXPECT_EQ(std::memcmp(copy->data(), BlockOf(chunk), chunk->bytes()), 0);
    return true;
  }

  int32_t next_value = 0;
  std::shared_ptr<FakeTierMemory> memory = std::make_shared<FakeTierMemory>();
  std::shared_ptr<table::Table> table;
  std::shared_ptr<DeviceTier> tier;
};

TEST(DeviceTierTest, ColumnsAreThereWhileAnItemRefersToThem) {
  TierFixture f;
  const auto a = f.Chunk(), b = f.Chunk();
  f.Insert(1, {a, b});
  f.Insert(2, {b});
  EXPECT_TRUE(f.Has(a) && f.Has(b));
  EXPECT_EQ(f.tier->stats().resident_bytes, 200u);
  EXPECT_EQ(f.memory->copied(), 2);
  f.Delete(1);
  EXPECT_FALSE(f.Has(a));
  EXPECT_TRUE(f.Has(b));
  f.Delete(2);
  EXPECT_FALSE(f.Has(b));
  EXPECT_EQ(f.tier->stats().resident_bytes, 0u);
  EXPECT_EQ(f.memory->copied(), 2);
}

TEST(DeviceTierTest, ItemsThatWereThereBeforeComeToo) {
  TierFixture f;
  const auto a = f.Chunk();
  f.Insert(1, {a});
  const auto later = std::make_shared<DeviceTier>("t", f.memory, TierOptions{});
  f.table->Attach(later);
  later->WaitUntilSettled();
  EXPECT_NE(later->Find(BlockOf(a)), nullptr);
}

TEST(DeviceTierTest, ANewPriorityCopiesNothingAndANewTrajectoryDoes) {
  TierFixture f;
  const auto a = f.Chunk(), b = f.Chunk(), c = f.Chunk();
  f.Insert(1, {a, b});
  ASSERT_TRUE(f.table->MutateItems({{{1, 5.0}}}, {}).ok());
  EXPECT_TRUE(f.Has(a) && f.Has(b));
  EXPECT_EQ(f.memory->copied(), 2);
  f.Insert(1, {b, c});
  EXPECT_FALSE(f.Has(a));
  EXPECT_TRUE(f.Has(b) && f.Has(c));
  EXPECT_EQ(f.memory->copied(), 3);
}

TEST(DeviceTierTest, AResetDropsEverything) {
  TierFixture f;
  const auto a = f.Chunk(), b = f.Chunk();
  f.Insert(1, {a});
  EXPECT_TRUE(f.Has(a));
  f.table->Reset();
  EXPECT_FALSE(f.Has(a));
  f.Insert(1, {b});
  EXPECT_FALSE(f.Has(a));
  EXPECT_TRUE(f.Has(b));
}

TEST(DeviceTierTest, ACopyThatIsHeldStaysAsItIs) {
  TierFixture f({.limit_bytes = 256});
  const auto a = f.Chunk(), b = f.Chunk();
  f.Insert(1, {a});
  ASSERT_TRUE(f.Has(a));
  DeviceCopyPtr held = f.tier->Find(BlockOf(a));
  f.Delete(1);
  f.Insert(2, {b});
  EXPECT_FALSE(f.Has(b));  // Its room is still taken.
  EXPECT_EQ(std::memcmp(held->data(), BlockOf(a), 100), 0);
  held = nullptr;
  EXPECT_TRUE(f.Has(b));
}

TEST(DeviceTierTest, ACopyMayOutliveTheTier) {
  auto f = std::make_unique<TierFixture>();
  const auto a = f->Chunk();
  f->Insert(1, {a});
  ASSERT_TRUE(f->Has(a));
  const DeviceCopyPtr held = f->tier->Find(BlockOf(a));
  f = nullptr;
  EXPECT_EQ(std::memcmp(held->data(), BlockOf(a), 100), 0);
}

TEST(DeviceTierTest, WhatIsOverTheLimitStaysWhereItIsUntilThereIsRoom) {
  TierFixture f({.limit_bytes = 512});
  std::vector<storage::ChunkPtr> chunks;
  for (uint64_t i = 0; i < 5; ++i) {
    chunks.push_back(f.Chunk());
    f.Insert(i, {chunks.back()});
  }
  const auto there = [&] {
    std::string text;
    for (const auto& chunk : chunks) text += f.Has(chunk) ? '1' : '0';
    return text;
  };
  EXPECT_EQ(there(), "11000");
  TierStats stats = f.tier->stats();
  EXPECT_EQ(stats.limit_bytes, 512u);
  EXPECT_EQ(stats.allocated_bytes, 512u);
  EXPECT_EQ(stats.resident_bytes, 200u);
  EXPECT_EQ(stats.overflow_bytes, 300u);
  EXPECT_EQ(stats.failures, 0);
  f.Delete(0);
  EXPECT_EQ(there(), "01100");
  f.Delete(2);
  f.Delete(3);
  EXPECT_EQ(there(), "01001");
  EXPECT_EQ(f.tier->stats().overflow_bytes, 0u);
}

TEST(DeviceTierTest, AChunkThatIsTooLargeDoesNotKeepOthersOut) {
  TierFixture f({.limit_bytes = 512});
  const auto large = Int32Chunk(std::vector<int32_t>(1000));
  const auto small = f.Chunk();
  f.Insert(1, {large});
  f.Insert(2, {small});
  EXPECT_FALSE(f.Has(large));
  EXPECT_TRUE(f.Has(small));
}

TEST(DeviceTierTest, WithoutMemoryOnTheDeviceThatIsToldAndTriedAgain) {
  TierFixture f;
  f.memory->Allow(0);
  const auto a = f.Chunk(), b = f.Chunk();
  f.Insert(1, {a});
  EXPECT_FALSE(f.Has(a));
  EXPECT_GE(f.tier->stats().failures, 1);
  EXPECT_EQ(f.tier->stats().last_error, "no memory there");
  EXPECT_EQ(f.tier->stats().overflow_bytes, 100u);
  f.memory->Allow(UINT64_MAX);
  f.Insert(2, {b});
  EXPECT_TRUE(f.Has(a) && f.Has(b));
  EXPECT_EQ(f.tier->stats().overflow_bytes, 0u);
}

TEST(DeviceTierTest, LessMemoryThanAskedForIsTaken) {
  constexpr uint64_t kMiB = 1 << 20;
  TierFixture f({.limit_bytes = 64 * kMiB});
  f.memory->Allow(20 * kMiB);
  const auto a = f.Chunk();
  f.Insert(1, {a});
  EXPECT_TRUE(f.Has(a));
  EXPECT_EQ(f.tier->stats().allocated_bytes, 16 * kMiB);
  EXPECT_EQ(f.tier->stats().failures, 2);
}

TEST(DeviceTierTest, ACopyThatFailsLeavesTheColumnWhereItIs) {
  TierFixture f;
  f.memory->FailCopies(INT_MAX);
  const auto a = f.Chunk();
  f.Insert(1, {a});
  EXPECT_FALSE(f.Has(a));
  EXPECT_EQ(f.tier->stats().last_error, "the way is broken");
  EXPECT_EQ(f.tier->stats().failures, 8);  // Then it gives up.
  EXPECT_EQ(f.tier->stats().overflow_bytes, 100u);
  f.Delete(1);
  f.tier->WaitUntilSettled();
  EXPECT_EQ(f.tier->stats().overflow_bytes, 0u);
}

TEST(DeviceTierTest, ACopyThatFailedIsMadeAgain) {
  TierFixture f;
  f.memory->FailCopies(3);
  const auto a = f.Chunk(), b = f.Chunk();
  f.Insert(1, {a});
  f.Insert(2, {b});
  EXPECT_TRUE(f.Has(a) && f.Has(b));
  EXPECT_EQ(f.tier->stats().failures, 3);
  EXPECT_EQ(f.tier->stats().overflow_bytes, 0u);
  EXPECT_EQ(f.tier->stats().resident_bytes, 200u);
}

TEST(DeviceTierTest, ACopyThatIsMadeAgainNeedsNobodyToCall) {
  TierFixture f({}, 100, absl::Milliseconds(20));
  f.memory->FailCopies(2);
  const auto a = f.Chunk();
  f.Insert(1, {a});
  while (f.tier->Find(BlockOf(a)) == nullptr) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(f.tier->stats().failures, 2);
}

TEST(DeviceTierTest, ACopyIsNotMadeAgainBeforeItsTimeNorWhereItCannotBe) {
  TierFixture late({}, 100, absl::Hours(1));
  TierFixture never;
  late.memory->FailCopies(1);
  never.memory->FailCopies(1, absl::UnimplementedError("there is no way"));
  for (TierFixture* f : {&late, &never}) {
    const auto a = f->Chunk();
    f->Insert(1, {a});
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(f->Has(a));
    EXPECT_EQ(f->tier->stats().failures, 1);
    EXPECT_EQ(f->tier->stats().overflow_bytes, 100u);
    f->Delete(1);
    f->tier->WaitUntilSettled();
    EXPECT_EQ(f->tier->stats().overflow_bytes, 0u);
  }
}

TEST(DeviceTierTest, TextAndItemsWithoutDataTakeNoRoom) {
  TierFixture f;
  f.Insert(1, {batch::TextChunk({"a", "b"})});
  const uint64_t keys[] = {7};
  const double priorities[] = {1};
  ASSERT_TRUE(f.table->InsertKeys(keys, priorities).ok());
  f.tier->WaitUntilSettled();
  EXPECT_EQ(f.memory->copied(), 0);
  f.Delete(7);
  f.table->Reset();
  f.tier->WaitUntilSettled();
}

}  // namespace
}  // namespace gear_reverb::device
