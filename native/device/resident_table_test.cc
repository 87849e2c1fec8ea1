// Resident tables on the twin, and on one that does everything as late as it may.
#include "native/device/late_backend.h"
#include "native/device/resident_table_conformance.h"

namespace gear_reverb::device::testing {
namespace {

using Made = absl::StatusOr<std::shared_ptr<DrawBackend>>;

INSTANTIATE_TEST_SUITE_P(
    Cpu, ResidentTableTest,
    ::testing::Values(NamedDrawBackend{"Twin", [] { return Made(MakeDrawTwin()); }},
                      NamedDrawBackend{"Late",
                                       [] { return Made(std::make_shared<LateBackend>()); }}),
    [](const auto& info) { return info.param.name; });

// What a table let go of is freed once the work that may read it is done, and what came and went
// between two batches at once.
TEST(ResidentMemoryTest, HoldsItemsForAsLongAsTheyMayBeRead) {
  const auto backend = std::make_shared<LateBackend>();
  table::TableOptions options = table::Options(5000);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  auto resident = ResidentTable::Create(table, backend, {}).value();
  const auto blocks = [] { return memory::ProcessArena()->stats().live_blocks; };
  const auto insert = [&](uint64_t key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, MakeContent(key, 1))).ok());
  };
  const auto prepare = [&] {
    ASSERT_TRUE(resident->Prepare(1, absl::InfinitePast(), nullptr).ok());
  };
  const size_t before = blocks();
  insert(1);
  const size_t of_item = blocks() - before;
  ASSERT_GT(of_item, 0u);
  prepare();
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_EQ(blocks(), before + of_item);
  for (uint64_t key = 2; key < 1000; ++key) {
    insert(key);
    insert(key);  // In place of the first.
    ASSERT_TRUE(table->MutateItems({}, {key}).ok());
  }
  EXPECT_EQ(blocks(), before + of_item);
  insert(1000);
  prepare();  // The work is not done.
  EXPECT_EQ(blocks(), before + 2 * of_item);
  ASSERT_TRUE(backend->Synchronize().ok());
  prepare();
  EXPECT_EQ(blocks(), before + of_item);
  table->Reset();
  EXPECT_EQ(blocks(), before + of_item);
  resident = nullptr;
  EXPECT_EQ(blocks(), before);
}

TEST(ResidentMemoryTest, WithoutMemoryForADirectoryItSaysSo) {
  const auto backend = std::make_shared<LateBackend>();
  table::TableOptions options = table::Options(50000);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  auto resident = ResidentTable::Create(table, backend, {}).value();
  for (uint64_t key = 0; key < 5000; ++key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, MakeContent(key, 1))).ok());
  }
  backend->LimitAllocations(150000);
  EXPECT_TRUE(absl::IsFailedPrecondition(resident->Prepare(1, absl::InfinitePast(), nullptr)));
  EXPECT_EQ(resident->why_not(), "the device has no memory for a directory of 5000 items");
  EXPECT_EQ(table->info().num_unused_samples, 1);
}

// More than is staged at once.
TEST(ResidentMemoryTest, ALargeTableIsCopiedInParts) {
  const auto backend = std::make_shared<LateBackend>();
  constexpr uint64_t kItems = 200000;
  table::TableOptions options = table::Options(kItems);
  options.sampler = selectors::UniformOptions{};
  const auto table = table::Table::Create(std::move(options)).value();
  std::vector<storage::TrajectoryPtr> items;
  for (uint64_t i = 0; i < 16; ++i) items.push_back(MakeContent(i, 16, 16));
  for (uint64_t key = 0; key < kItems; ++key) {
    ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key, 1, items[key % 16])).ok());
  }
  auto resident = ResidentTable::Create(table, backend, {}).value();
  ASSERT_TRUE(resident->Prepare(64, absl::InfinitePast(), nullptr).ok());
  auto plan = DrawPlan::Create(resident->directory(), 64, {}, false, nullptr).value();
  const DrawnArrays& arrays = plan->arrays();
  auto* const output =
      static_cast<std::byte*>(backend->select()->Allocate(arrays.output_bytes).value());
  ASSERT_TRUE(plan->Enqueue(resident->selection(), 0, output, nullptr).ok());
  ASSERT_TRUE(resident->Collect(*plan, output, nullptr).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  const auto* const keys = reinterpret_cast<const uint64_t*>(output + arrays.keys.offset);
  const auto* const numbers = reinterpret_cast<const uint64_t*>(output + arrays.columns[0].offset);
  for (uint64_t i = 0; i < 64 * 16; ++i) {
    ASSERT_EQ(numbers[2 * i], keys[i / 16] % 16);
    ASSERT_EQ(numbers[2 * i + 1], i % 16);
  }
  plan = nullptr;
  backend->select()->Free(output);
}

}  // namespace
}  // namespace gear_reverb::device::testing
