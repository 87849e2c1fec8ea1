// Resident tables with a tier: what it has copied is read there, and for as long as it is read.
#include <algorithm>

#include "native/device/late_backend.h"
#include "native/device/resident_table_fixture.h"

namespace gear_reverb::device::testing {
namespace {

// The process's own, new memory poisoned.
class RecordedMemory final : public TierMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes) override {
    base::MutexLock lock(&mutex_);
    blocks_.push_back(std::vector<std::byte>(bytes, std::byte{0xee}));
    return blocks_.back().data();
  }
  void Free(std::byte*) override {}
  absl::Status Copy(absl::Span<const kernels::Copy> copies) override {
    for (const kernels::Copy& copy : copies) {
      std::memcpy(copy.destination, copy.source, copy.bytes);
    }
    return absl::OkStatus();
  }
  uint64_t default_limit_bytes() const override { return 1 << 20; }

  bool Has(const std::byte* data) const {
    base::MutexLock lock(&mutex_);
    return std::any_of(blocks_.begin(), blocks_.end(), [data](const auto& block) {
      return data >= block.data() && data < block.data() + block.size();
    });
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<std::vector<std::byte>> blocks_;
};

class ResidentTierTest : public ResidentTableTest {
 protected:
  std::shared_ptr<DeviceTier> TierOf(const std::shared_ptr<table::Table>& of) override {
    auto recorded = std::make_unique<RecordedMemory>();
    memory = recorded.get();
    tier = std::make_shared<DeviceTier>("t", std::move(recorded), TierOptions{limit_bytes});
    of->Attach(tier);
    return tier;
  }
  void DrawAndExpect() {
    const auto batch = Draw(64);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectContents(*batch);
  }
  // Pieces of the entries of slots [first, end) that are in the tier's memory.
  int PiecesThere(uint32_t first, uint32_t end) {
    EXPECT_TRUE(backend->Synchronize().ok());
    const DirectoryView& view = resident->directory().view();
    return static_cast<int>(std::count_if(view.pieces + first * view.pieces_per_slot,
                                          view.pieces + end * view.pieces_per_slot,
                                          [this](const RowPiece& piece) {
                                            return piece.data != nullptr && memory->Has(piece.data);
                                          }));
  }

  uint64_t limit_bytes = 0;
  RecordedMemory* memory = nullptr;
  std::shared_ptr<DeviceTier> tier;
};

TEST_P(ResidentTierTest, WhatHasComeIsReadThere) {
  Open(100);
  for (uint64_t key = 0; key < 40; ++key) Insert(key, 1, 1 + key % 3);
  DrawAndExpect();
  tier->WaitUntilSettled();
  DrawAndExpect();
  int pieces = 0;  // The last column is squeezed.
  for (int key = 0; key < 40; ++key) pieces += 2 * (1 + key % 3) + 1;
  EXPECT_EQ(PiecesThere(0, 40), pieces);
  EXPECT_TRUE(resident->directory().mostly_there());
  table->Reset();
  contents.clear();
  Insert(7, 1);
  DrawAndExpect();
}

TEST_P(ResidentTierTest, WhatIsOverTheLimitComesWhenThereIsRoom) {
  limit_bytes = 4096;
  Open(100);
  for (uint64_t key = 0; key < 40; ++key) Insert(key, 1);
  tier->WaitUntilSettled();
  DrawAndExpect();
  EXPECT_GT(PiecesThere(0, 20), 0);
  EXPECT_EQ(PiecesThere(20, 40), 0);  // The oldest come first.
  for (uint64_t key = 0; key < 20; ++key) {
    ASSERT_TRUE(table->MutateItems({}, {key}).ok());
    contents.erase(key);
  }
  DrawAndExpect();
  ASSERT_TRUE(backend->Synchronize().ok());
  DrawAndExpect();  // Lets go of copies that were read before.
  tier->WaitUntilSettled();
  DrawAndExpect();  // Finds what took their place.
  EXPECT_GT(PiecesThere(20, 40), 0);
}

// Batches are looked at when their copies' memory may long have been used again.
TEST_P(ResidentTierTest, CopiesStayForAsLongAsTheyAreRead) {
  limit_bytes = 3000;
  Open(10);
  std::mt19937_64 random(4);
  std::vector<Batch> batches;
  uint64_t key = 0;
  bool were_there = false;
  for (int round = 0; round < 300; ++round) {
    for (uint64_t n = random() % 4; n > 0 || key == 0; n -= n > 0) {
      Insert(random() % 3 == 0 ? key : ++key, 1 + random() % 3, 1 + random() % 2);
    }
    if (random() % 3 == 0) tier->WaitUntilSettled();
    const auto batch = Draw(8);
    ASSERT_TRUE(batch.ok()) << batch.status();
    batches.push_back(*batch);
    were_there = were_there || resident->directory().mostly_there();
  }
  ASSERT_TRUE(backend->Synchronize().ok());
  for (const Batch& batch : batches) ExpectContents(batch);
  EXPECT_TRUE(were_there);
}

TEST(SlotCopiesTest, ManyArrivalsAreLookedUp) {
  table::TableOptions options = table::Options(100);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  const auto tier =
      std::make_shared<DeviceTier>("t", std::make_unique<RecordedMemory>(), TierOptions{});
  table->Attach(tier);
  SlotCopies few(tier, /*most_arrivals=*/3), many(tier);
  std::vector<storage::TrajectoryPtr> items;
  for (uint32_t slot = 0; slot < 9; ++slot) {
    items.push_back(MakeContent(slot, 1));
    const storage::ChunkColumn& column = items[slot]->columns[1].slices[0].source();
    for (SlotCopies* const copies : {&few, &many}) {
      EXPECT_EQ(copies->Find(slot, column, column.data.data()), nullptr);
    }
  }
  EXPECT_TRUE(few.TakeArrived().empty());
  for (uint32_t slot = 0; slot < 8; ++slot) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(slot + 1, 1, items[slot])).ok());
  }
  tier->WaitUntilSettled();
  std::vector<DeviceCopyPtr> kept;
  few.Forget(2, *items[2], &kept);
  many.Forget(2, *items[2], &kept);
  EXPECT_EQ(few.TakeArrived(), (std::vector<uint32_t>{0, 1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(many.TakeArrived(), (std::vector<uint32_t>{0, 1, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(kept.empty());
  EXPECT_FALSE(few.most());
  for (uint32_t slot = 0; slot < 8; ++slot) {
    const storage::ChunkColumn& column = items[slot]->columns[1].slices[0].source();
    few.Forget(slot, *items[slot], &kept);
    const std::byte* const found = few.Find(slot, column, column.data.data() + 5);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(std::memcmp(found, column.data.data() + 5, column.data.size() - 5), 0);
  }
  EXPECT_TRUE(few.most());
  few.Forget(0, *items[0], &kept);
  EXPECT_EQ(kept.size(), 1u);
}

using Made = absl::StatusOr<std::shared_ptr<DrawBackend>>;

INSTANTIATE_TEST_SUITE_P(
    Cpu, ResidentTierTest,
    ::testing::Values(NamedDrawBackend{"Twin", [] { return Made(MakeDrawTwin()); }},
                      NamedDrawBackend{"Late",
                                       [] { return Made(std::make_shared<LateBackend>()); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gear_reverb::device::testing
