#include <gmock/gmock.h>

#include "native/device/table_mirror_conformance.h"

namespace gear_reverb::device::testing {

INSTANTIATE_TEST_SUITE_P(Cpu, TableMirrorTest, ::testing::ValuesIn(Cases(TwinBackend())), NameOf);

namespace {

// A twin whose memory runs out or whose work fails when told to.
class FailingBackend final : public SelectBackend {
 public:
  bool fails = false;

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    if (fails) return absl::ResourceExhaustedError("no memory");
    return twin_->Allocate(bytes);
  }
  void Free(void* memory) override { twin_->Free(memory); }
  absl::Status Fill(void* memory, int byte, size_t bytes, Stream stream) override {
    return Or(twin_->Fill(memory, byte, bytes, stream));
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, Stream stream) override {
    return Or(twin_->Copy(to, from, bytes, stream));
  }
  absl::Status Synchronize(Stream stream) override { return twin_->Synchronize(stream); }
  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable& claims, Stream stream) override {
    return Or(twin_->Write(view, states, n, claims, stream));
  }
  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, Stream stream) override {
    if (fails) return absl::InternalError("device lost");
    return twin_->Resum(view, states, n, members_changed, stream);
  }
  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, Stream stream) override {
    if (fails) return absl::InternalError("device lost");
    return twin_->Draw(view, state, n, beta, output, stream);
  }
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   Stream stream) override {
    if (fails) return absl::InternalError("device lost");
    return twin_->Top(view, k, output, stream);
  }

 private:
  absl::Status Or(const absl::Status& status) const {
    return fails ? absl::InternalError("device lost") : status;
  }
  const std::shared_ptr<SelectBackend> twin_ = MakeSelectTwin();
};

class FailingMirrorTest : public ::testing::Test {
 protected:
  FailingMirrorTest() {
    table::TableOptions options = table::Options();
    options.sampler = selectors::UniformOptions{};
    table = table::Table::Create(std::move(options)).value();
    mirror = TableMirror::Create(table, backend, 1).value();
    Insert(1);
  }
  void Insert(uint64_t key) { ASSERT_TRUE(table->InsertOrAssign(table::MakeItem(key)).ok()); }
  absl::Status Draw() { return mirror->Draw(4, 0, absl::InfinitePast(), {}, nullptr).status(); }
  std::vector<uint64_t> Keys() {
    EXPECT_TRUE(mirror->Follow(nullptr).ok());
    std::vector<uint64_t> keys;
    for (const auto& [slot, key] : ItemsOf(mirror->selection())) keys.push_back(key);
    return keys;
  }

  std::shared_ptr<FailingBackend> backend = std::make_shared<FailingBackend>();
  std::shared_ptr<table::Table> table;
  std::unique_ptr<TableMirror> mirror;
};

TEST_F(FailingMirrorTest, LosesNothingWhenTheDeviceFailsForAWhile) {
  ASSERT_TRUE(Draw().ok());
  backend->fails = true;
  Insert(2);
  EXPECT_TRUE(absl::IsInternal(Draw()));
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_FALSE(mirror->Follow(nullptr).ok());
  Insert(3);
  backend->fails = false;
  EXPECT_TRUE(Draw().ok());
  EXPECT_THAT(Keys(), ::testing::UnorderedElementsAre(2, 3));
  EXPECT_EQ(table->info().counts.samples, 12);
  EXPECT_EQ(table->info().num_unused_samples, 4);
}

TEST_F(FailingMirrorTest, LosesNothingWhenMemoryRunsOut) {
  backend->fails = true;
  EXPECT_TRUE(absl::IsResourceExhausted(Draw()));
  backend->fails = false;
  EXPECT_TRUE(Draw().ok());
  EXPECT_THAT(Keys(), ::testing::UnorderedElementsAre(1));
}

TEST_F(FailingMirrorTest, LeavesTheTableWhenItGoes) {
  mirror.reset();
  Insert(5);
  EXPECT_EQ(table->size(), 2);
}

SlotState TakenFor(uint64_t key, const std::vector<SlotState>& changes) {
  SlotState last;
  for (const SlotState& change : changes) {
    if (change.key == key) last = change;
  }
  return last;
}

TEST(ChangeFeedTest, KeepsNoMoreThanTheLastChangesOfManyForOneSlot) {
  ChangeFeed feed(/*by_insertion=*/false, /*with_trajectories=*/false);
  table::Item item;
  for (int i = 0; i < 1000000; ++i) {
    item.slot = static_cast<uint32_t>(i % 100);
    item.key = item.slot + 1000;
    item.priority = i;
    feed.OnUpdate(item);
  }
  TableChanges changes;
  feed.Take(&changes);
  EXPECT_FALSE(changes.reset);
  EXPECT_LE(changes.states.size(), size_t{1} << 16);
  for (uint32_t slot = 0; slot < 100; ++slot) {
    EXPECT_EQ(TakenFor(slot + 1000, changes.states).priority, 1000000 - 100 + slot);
  }
  feed.Take(&changes);
  EXPECT_TRUE(!changes.reset && changes.states.empty());
  feed.OnUpdate(item);
  feed.OnReset();
  feed.Take(&changes);
  EXPECT_TRUE(changes.reset && changes.states.empty());
}

}  // namespace
}  // namespace gear_reverb::device::testing
