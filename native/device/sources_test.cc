#include "native/device/sources.h"

#include "gtest/gtest.h"
#include "native/device/device_tier_test_util.h"

namespace gear_reverb::device {
namespace {

constexpr uintptr_t kFar = uintptr_t{1} << 50;

const std::byte* Far(const std::byte* address) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(address) + kFar);
}

class FarRegistrar final : public Registrar {
 public:
  absl::StatusOr<const std::byte*> Register(std::byte* base, size_t, bool) override {
    return Far(base);
  }
  void Unregister(std::byte*) override {}
};

// Chunks in an arena that is registered; the first is an item's of a table with a tier.
class SourcesTest : public ::testing::Test {
 protected:
  SourcesTest() {
    for (auto* const chunk : {&in_tier_, &registered_}) {
      std::vector<int32_t> values(25, 7);
      const tensor::TensorView view{
          tensor::DType::kInt32, {25}, {reinterpret_cast<const std::byte*>(values.data()), 100}};
      *chunk = storage::CopyToChunk(*arena_, 1, {}, {view}).value();
    }
    table_->Attach(tier_);
    EXPECT_TRUE(table_->InsertOrAssign({1, 1.0, 0, UINT32_MAX, {}, ItemOf({in_tier_})}).ok());
    tier_->WaitUntilSettled();
    segments_->WaitUntilTried();
  }

  static const std::byte* BlockOf(const storage::ChunkPtr& chunk) {
    return chunk->columns()[0].data.data();
  }

  const std::shared_ptr<memory::Arena> arena_ = memory::Arena::Create({});
  storage::ChunkPtr in_tier_, registered_;
  const std::shared_ptr<table::Table> table_ = TableOf(10);
  const std::shared_ptr<DeviceTier> tier_ =
      std::make_shared<DeviceTier>("t", NewCpuTierMemory(), TierOptions{});
  const std::shared_ptr<PinnedSegments> segments_ = std::make_shared<PinnedSegments>(
      std::make_shared<ArenaSource>(arena_), std::make_shared<FarRegistrar>(),
      std::make_shared<RegistrationBudget>(uint64_t{1} << 40));
  const std::byte elsewhere_[16] = {};
};

TEST_F(SourcesTest, TheDevicesOwnMemoryComesFirstThenWhatIsRegistered) {
  const Sources sources(tier_, segments_);
  const std::byte* const a = BlockOf(in_tier_);
  const std::byte* const b = BlockOf(registered_);
  const Sources::Found there = sources.Find(a, a + 8, 12);
  EXPECT_EQ(there.place, Sources::Place::kDevice);
  EXPECT_EQ(there.data, tier_->Find(a)->data() + 8);
  ASSERT_NE(there.copy, nullptr);
  const Sources::Found near = sources.Find(b, b + 8, 12);
  EXPECT_EQ(near.place, Sources::Place::kRegistered);
  EXPECT_EQ(near.data, Far(b + 8));
  EXPECT_EQ(near.copy, nullptr);
  // Of an unknown block nothing is known but its address.
  EXPECT_EQ(sources.Find(nullptr, a, 4).place, Sources::Place::kRegistered);
  const Sources::Found nowhere = sources.Find(nullptr, elsewhere_, 4);
  EXPECT_EQ(nowhere.place, Sources::Place::kNone);
  EXPECT_EQ(nowhere.data, nullptr);
}

TEST_F(SourcesTest, EitherMayBeMissing) {
  const std::byte* const a = BlockOf(in_tier_);
  EXPECT_EQ(Sources(nullptr, segments_).Find(a, a, 4).place, Sources::Place::kRegistered);
  EXPECT_EQ(Sources(tier_).Find(a, a, 4).place, Sources::Place::kDevice);
  EXPECT_EQ(Sources().Find(a, a, 4).place, Sources::Place::kNone);
}

TEST_F(SourcesTest, APlanGetsTheDevicesAddressesAndKeepsWhatItReads) {
  const std::byte* const a = BlockOf(in_tier_);
  const std::byte* const b = BlockOf(registered_);
  GatherPlan plan;
  plan.AddRow(RowKind::kCopy, 0, 0, 40);
  plan.AddPiece(a + 4, 8, a);
  plan.AddPiece(b, 16, b);
  plan.AddMask(128, 0, 10, 3);
  plan.AddRow(RowKind::kCopy, 256, 0, 40);
  plan.AddPiece(elsewhere_, 16);
  plan.AddPiece(a + 20, 24, a);
  Sources::Resolved resolved = Sources(tier_, segments_).Resolve(&plan);
  const std::byte* const copy = tier_->Find(a)->data();
  EXPECT_EQ(plan.pieces()[0].data, copy + 4);
  EXPECT_EQ(plan.pieces()[1].data, Far(b));
  EXPECT_EQ(plan.pieces()[2].data, elsewhere_);
  EXPECT_EQ(plan.pieces()[3].data, copy + 20);
  EXPECT_EQ(resolved.not_found, std::vector<size_t>{2});
  EXPECT_EQ(resolved.device_bytes, 32u);
  // The copy stays for as long as it may be read.
  ASSERT_EQ(resolved.copies.size(), 2u);
  const std::weak_ptr<const DeviceCopy> held = resolved.copies[0];
  ASSERT_TRUE(table_->MutateItems({}, {1}).ok());
  tier_->WaitUntilSettled();
  EXPECT_EQ(tier_->Find(a), nullptr);
  EXPECT_FALSE(held.expired());
  resolved.copies.clear();
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace gear_reverb::device
