// Items that go into a table together, without waiting.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

std::vector<Item> Batch(uint64_t first, uint64_t count) {
  std::vector<Item> items;
  for (uint64_t key = first; key < first + count; ++key) {
    items.push_back(MakeItem(key, 1, MakeTrajectory({MakeChunk(key / 4, 1, 3)})));
  }
  return items;
}

TEST_F(TableTest, ABatchGoesInAtOnceAndEvicts) {
  Open(Options(/*max_size=*/5));
  absl::Status status;
  std::vector<Item> items = Batch(1, 8);
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 8);
  EXPECT_TRUE(status.ok());
  const TableSnapshot snapshot = table->Snapshot();
  std::vector<uint64_t> keys;
  for (const Item& item : snapshot.items) keys.push_back(item.key);
  EXPECT_EQ(keys, (Keys{4, 5, 6, 7, 8}));
  EXPECT_EQ(snapshot.info.counts.inserts, 8);
  EXPECT_EQ(snapshot.info.bytes, 5 * 24) << "a chunk per item here";
  table->Reset();
  EXPECT_EQ(table->info().bytes, 0);
}

int32_t OffsetOf(const Item& item) { return item.trajectory->columns[0].slices[0].offset; }

// What a table tells of itself.
std::vector<std::string> StateOf(Table& table) {
  const TableSnapshot snapshot = table.Snapshot();
  const TableInfo& info = snapshot.info;
  std::vector<std::string> state = {absl::StrCat(info.counts.inserts, " ", info.counts.deletes, " ",
                                                 info.num_episodes, " ", info.num_deleted_episodes,
                                                 " ", info.bytes)};
  for (const Item& item : snapshot.items) {
    EXPECT_EQ(item.row, 0u);
    state.push_back(absl::StrCat(item.key, " ", item.priority, " ", item.times_sampled, " ",
                                 item.trajectory->chunks()[0]->key(), " ", OffsetOf(item)));
  }
  return state;
}

class BatchTest : public testing::TestWithParam<selectors::SelectorOptions> {};

TEST_P(BatchTest, BatchesDoWhatOneItemAfterAnotherDoes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    TableOptions options = Options(/*max_size=*/1 + random() % 40);
    options.remover = GetParam();
    if (random() % 2 == 0) options.sampler = selectors::PrioritizedOptions{1};
    if (random() % 3 == 0) options.rate_limiter = {1, 3, -kAny, 30};
    const auto batched = Table::Create(options).value(), single = Table::Create(options).value();
    for (int step = 0; step < 12; ++step) {
      std::vector<Item> items;
      const uint64_t size = random() % 50, first = random() % 200, episode = random() % 5;
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t key = random() % 10 == 0 ? random() % 200 : first + i;
        items.push_back(MakeItem(key, static_cast<double>(i % 3)));
      }
      for (uint64_t i = 0; i < size; i += 4) {
        const auto chunk = MakeChunk(1000 * step + i / 4, episode, 8);
        SetRows(storage::TrajectoryBuilder::SliceOf(chunk, 0, 2, false),
                absl::MakeSpan(items).subspan(i, 4));
      }
      size_t inserted = 0;
      for (; inserted < size; ++inserted) {
        Item item = items[inserted];
        item.Settle();
        const TableSnapshot before = single->Snapshot();
        const auto same = [&](const Item& other) { return other.key == item.key; };
        if (!single->CanInsert(1) || std::any_of(before.items.begin(), before.items.end(), same)) {
          break;
        }
        ASSERT_TRUE(single->InsertOrAssign(item, kPast).ok());
      }
      absl::Status status;
      ASSERT_EQ(batched->InsertAtOnce(absl::MakeSpan(items), &status),
                static_cast<int64_t>(inserted));
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = inserted; i < size; ++i) ASSERT_NE(items[i].trajectory, nullptr);
      ASSERT_EQ(StateOf(*batched), StateOf(*single));
    }
    // What is drawn depends on priorities and slots, which both must have right.
    if (!batched->CanSample(1)) continue;
    const std::vector<SampledItem> samples = batched->Sample(20, kPast).value();
    std::map<uint64_t, int32_t> offsets;
    for (const Item& item : single->Snapshot().items) offsets[item.key] = OffsetOf(item);
    for (const auto& sample : samples) {
      EXPECT_EQ(sample.table_size, batched->size());
      EXPECT_EQ(OffsetOf(sample.item), offsets.at(sample.item.key));
    }
    batched->Reset();
    EXPECT_EQ(batched->info().bytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, BatchTest,
                         testing::Values(selectors::SelectorOptions(selectors::FifoOptions{}),
                                         selectors::SelectorOptions(selectors::LifoOptions{}),
                                         selectors::SelectorOptions(selectors::HeapOptions{true})),
                         [](const auto& info) {
                           const std::string name = selectors::ToString(info.param);
                           return name.substr(0, name.find('('));
                         });

// Items 1 to 4: rows of two steps of a chunk.
std::vector<Item> Rows() {
  std::vector<Item> items;
  for (uint64_t key = 1; key <= 4; ++key) items.push_back(MakeItem(key));
  SetRows(storage::TrajectoryBuilder::SliceOf(MakeChunk(7, 1, 8), 0, 2, false),
          absl::MakeSpan(items));
  return items;
}

TEST_F(TableTest, ARowMayTakeThePlaceOfAnotherOfItsChunk) {
  Open();
  absl::Status status;
  std::vector<Item> items = Rows();
  Item other = items[3];
  other.key = 2;
  ASSERT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 4);
  ASSERT_TRUE(table->InsertOrAssign(std::move(other)).ok());
  std::vector<int32_t> offsets;
  for (const Item& item : table->Snapshot().items) offsets.push_back(OffsetOf(item));
  EXPECT_EQ(offsets, (std::vector<int32_t>{0, 6, 4, 6}));
  EXPECT_EQ(table->info().bytes, 64);
  EXPECT_EQ(table->info().num_episodes, 1);
}

// Keeps the address of each item's trajectory, as it is told of it.
class Addresses final : public Extension {
 public:
  void OnInsert(const Item& item) override { OnUpdate(item); }
  void OnUpdate(const Item& item) override {
    EXPECT_EQ(item.row, 0u);
    EXPECT_EQ(OffsetOf(item), 2 * (static_cast<int32_t>(item.key % 10) - 1));
    addresses[item.key].insert(item.trajectory.get());
  }
  std::string DebugString() const override { return "addresses"; }

  std::map<uint64_t, std::set<const storage::Trajectory*>> addresses;
};

TEST_F(TableTest, AnExtensionSeesTrajectoriesThatStay) {
  const auto extension = std::make_shared<Addresses>();
  Open();
  absl::Status status;
  std::vector<Item> items = Rows();
  ASSERT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 4);
  table->Attach(extension);
  items = Rows();
  for (Item& item : items) item.key += 10;
  ASSERT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 4);
  for (const double priority : {2, 3}) {
    std::vector<KeyWithPriority> updates;
    for (const uint64_t key : {1, 2, 3, 4, 11, 12, 13, 14}) updates.push_back({key, priority});
    ASSERT_TRUE(table->MutateItems(updates, {}).ok());
  }
  ASSERT_EQ(extension->addresses.size(), 8u);
  for (const auto& [key, addresses] : extension->addresses) EXPECT_EQ(addresses.size(), 1u) << key;
}

TEST_F(TableTest, ABatchAdmitsAWaitingSampleBetweenItsItems) {
  auto options = Options();
  options.rate_limiter = QueueOf(3);
  Open(options);
  StartSample("a", 1);
  absl::Status status;
  std::vector<Item> items = Batch(1, 5);
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 4);
  EXPECT_EQ(Written(), std::vector<std::string>{"a: 1"});
}

TEST_F(TableTest, ABatchStopsWhereAnItemWouldWaitOrAssign) {
  auto options = Options();
  options.rate_limiter = QueueOf(3);
  Open(options);
  absl::Status status;
  std::vector<Item> items = Batch(1, 5);
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 3);
  EXPECT_TRUE(status.ok());
  EXPECT_NE(items[3].trajectory, nullptr) << "what is left is as it was";
  EXPECT_EQ(table->info().bytes, 3 * 24);
  items = Batch(3, 1);
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 0);
  EXPECT_EQ(table->info().bytes, 3 * 24);
}

TEST_F(TableTest, ABatchWithAnInvalidPriorityOrForAClosedTableIsRefused) {
  Open();
  absl::Status status;
  std::vector<Item> items = Batch(1, 5);
  items[4].priority = std::nan("");
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  items[4].priority = 1;
  table->Close();
  EXPECT_EQ(table->InsertAtOnce(absl::MakeSpan(items), &status), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(table->info().bytes, 0);
}

}  // namespace
}  // namespace gear_reverb::table
