// Items that go into a table together, without waiting.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
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

// What a table tells of itself.
std::vector<std::string> StateOf(Table& table) {
  const TableSnapshot snapshot = table.Snapshot();
  const TableInfo& info = snapshot.info;
  std::vector<std::string> state = {absl::StrCat(info.counts.inserts, " ", info.counts.deletes, " ",
                                                 info.num_episodes, " ", info.bytes)};
  for (const Item& item : snapshot.items) {
    state.push_back(absl::StrCat(item.key, " ", item.priority, " ", item.times_sampled, " ",
                                 item.trajectory->chunks()[0]->key()));
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
        const auto chunk = MakeChunk(1000 * step + i / 4, episode, 2);
        items.push_back(MakeItem(key, static_cast<double>(i % 3), MakeTrajectory({chunk})));
      }
      size_t inserted = 0;
      for (; inserted < size; ++inserted) {
        const Item& item = items[inserted];
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
    for (const auto& sample : samples) EXPECT_EQ(sample.table_size, batched->size());
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
