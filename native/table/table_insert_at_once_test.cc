// Items that go into a table together, without waiting.
#include <gmock/gmock.h>

#include <cmath>
#include <vector>

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
