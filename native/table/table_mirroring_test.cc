// What mirrors of a table rely on.
#include <gmock/gmock.h>

#include <thread>

#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

using ::testing::ElementsAre;

// Writes down the keys that it sees, and where they lie.
class Observer : public Extension {
 public:
  void OnAttach(const std::string& name) override { log.push_back("attach " + name); }
  void OnInsert(const Item& item) override { Add("insert", item); }
  void OnUpdate(const Item& item) override { Add("update", item); }
  void OnSample(const Item& item) override { Add("sample", item); }
  void OnDelete(const Item& item) override { Add("delete", item); }
  std::string DebugString() const override { return "Observer"; }

  std::vector<std::string> log;

 private:
  void Add(const std::string& what, const Item& item) {
    log.push_back(what + " " + std::to_string(item.key) + " at " + std::to_string(item.slot));
  }
};

class TableMirroringTest : public TableTest {};

TEST_F(TableMirroringTest, AnObserverThatComesLateSeesTheItemsInOrderOfInsertion) {
  Open();
  for (int key : {1, 2, 3}) Insert(key);
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  Insert(4);  // In the place of 1.
  const auto observer = std::make_shared<Observer>();
  table->Attach(observer);
  Insert(2, 5);
  Insert(6);
  ASSERT_TRUE(table->MutateItems({{3, 2}}, {4}).ok());
  Sample(1);
  EXPECT_THAT(observer->log, ElementsAre("attach t", "insert 2 at 1", "insert 3 at 2",
                                         "insert 4 at 0", "update 2 at 1", "insert 6 at 3",
                                         "update 3 at 2", "delete 4 at 0", "sample 2 at 1"));
  observer->log.clear();
  table->Detach(observer.get());
  Insert(7);
  EXPECT_THAT(observer->log, ElementsAre());
}

TEST_F(TableMirroringTest, AGrantIsOfAsManyDrawsAsTheLimiterAllows) {
  auto options = Options();
  options.rate_limiter = QueueOf(10);
  Open(options);
  int64_t granted = 0;
  const auto grant = [&](int64_t n) {
    granted = 0;
    return table->GrantDraws(n, kPast, [&](int64_t allowed) { granted = allowed; });
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(grant(5)));
  EXPECT_EQ(granted, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(grant(0)));
  for (int key : {1, 2, 3}) Insert(key);
  ASSERT_TRUE(grant(2).ok());
  EXPECT_EQ(granted, 2);
  ASSERT_TRUE(grant(5).ok());
  EXPECT_EQ(granted, 1);
  EXPECT_EQ(table->info().counts.samples, 3);
  EXPECT_TRUE(absl::IsDeadlineExceeded(grant(1)));
  table->Close();
  EXPECT_TRUE(absl::IsCancelled(grant(1)));
}

TEST_F(TableMirroringTest, GrantsWaitInTheQueueOfTheSamples) {
  Open();
  StartSample("first", 1);
  std::thread inserter([&] {
    while (table->info().waiting_samples < 2) std::this_thread::yield();
    Insert(9);
  });
  int64_t granted = 0;
  ASSERT_TRUE(table->GrantDraws(4, absl::InfiniteFuture(), [&](int64_t n) { granted = n; }).ok());
  inserter.join();
  EXPECT_EQ(granted, 4);
  EXPECT_THAT(Written(), ElementsAre("first: 9"));
}

TEST_F(TableMirroringTest, NoGrantsWhereEveryDrawChangesTheTable) {
  auto options = Options();
  options.max_times_sampled = 1;
  Open(options);
  Insert(1);
  const absl::Status status = table->GrantDraws(1, kPast, [](int64_t) { FAIL(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(table->info().counts.samples, 0);
}

TEST_F(TableMirroringTest, DrawsMadeElsewhereAreCounted) {
  const auto observer = std::make_shared<Observer>();
  Open();
  table->Attach(observer);
  Insert(1);
  Insert(2);
  observer->log.clear();
  table->CountDrawn({2, 2, 77});
  EXPECT_THAT(observer->log, ElementsAre("sample 2 at 1", "sample 2 at 1"));
  EXPECT_EQ(table->info().num_unique_samples, 1);
  EXPECT_EQ(table->Snapshot().items[1].times_sampled, 2);
}

}  // namespace
}  // namespace gear_reverb::table
