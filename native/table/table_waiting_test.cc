// Who waits, for how long, and in what order calls go on.
#include <gmock/gmock.h>

#include <thread>

#include "native/base/log.h"
#include "native/base/testing_timer.h"
#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TableWaitingTest : public TableTest {
 protected:
  void OpenQueue(int64_t size) {
    auto options = Options();
    options.rate_limiter = QueueOf(size);
    options.max_times_sampled = 1;
    Open(options);
  }
};

TEST_F(TableWaitingTest, ASampleWaitsForAnInsert) {
  OpenQueue(2);
  EXPECT_NE(StartSample("s", 1), 0);
  EXPECT_THAT(Written(), IsEmpty());
  EXPECT_EQ(StartInsert("i", 5), 0);
  EXPECT_THAT(Written(), ElementsAre("i: ok", "s: 5"));
}

TEST_F(TableWaitingTest, RateLimitedTellsWhetherADrawWaited) {
  OpenQueue(2);
  std::vector<bool> limited;
  const auto note = [&](auto samples) { limited.push_back(samples->front().rate_limited); };
  table->SampleAsync(1, absl::InfiniteFuture(), note);
  Insert(1);
  Insert(2);
  table->SampleAsync(1, absl::InfiniteFuture(), note);
  EXPECT_THAT(limited, ElementsAre(true, false));
}

TEST_F(TableWaitingTest, FirstComeFirstServed) {
  OpenQueue(1);
  Insert(1);
  StartInsert("b", 2);
  StartInsert("c", 3);
  EXPECT_FALSE(Insert(4)) << "a call that cannot wait must not overtake";
  EXPECT_THAT(Sample(1), ElementsAre(1));
  EXPECT_THAT(Written(), ElementsAre("b: ok"));
  EXPECT_THAT(Sample(1), ElementsAre(2));
  EXPECT_THAT(Sample(1), ElementsAre(3));
  EXPECT_THAT(Written(), ElementsAre("c: ok"));
}

TEST_F(TableWaitingTest, WaitingInsertsAndSamplesUnblockEachOther) {
  OpenQueue(1);
  StartInsert("i1", 1);
  for (int i = 2; i <= 4; ++i) StartInsert("i" + std::to_string(i), i);
  StartSample("s", 9);
  EXPECT_THAT(Written(), testing::UnorderedElementsAre("i1: ok", "i2: ok", "s: 1"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Sample(9), ElementsAre(i + 2));
  EXPECT_THAT(Written(), ElementsAre("i3: ok", "i4: ok"));
}

TEST_F(TableWaitingTest, AnUpdateOvertakes) {
  OpenQueue(1);
  Insert(1);
  StartInsert("b", 2);
  EXPECT_EQ(StartInsert("update", 1), 0);
  EXPECT_THAT(Written(), ElementsAre("update: ok"));
}

TEST_F(TableWaitingTest, TheSameKeyTwiceInTheQueueIsOneInsert) {
  OpenQueue(1);
  Insert(1);
  StartInsert("b", 2);
  StartInsert("again", 2);
  Sample(1);
  EXPECT_THAT(Written(), ElementsAre("b: ok", "again: ok"));
  EXPECT_EQ(table->info().counts.inserts, 2);
}

TEST_F(TableWaitingTest, ALateDeadlineExpiresAtOnceUnlessNothingBlocks) {
  OpenQueue(1);
  const auto sampled = table->Sample(1, kPast);
  EXPECT_TRUE(absl::IsDeadlineExceeded(sampled.status()));
  EXPECT_EQ(sampled.status().message(), kRateLimiterTimeout);
  EXPECT_TRUE(Insert(1));
  EXPECT_FALSE(Insert(2));
}

TEST_F(TableWaitingTest, CallsExpire) {
  OpenQueue(1);
  const absl::Time late = absl::Now() + absl::Milliseconds(200);
  {
    const base::testing::TimerGate gate;
    StartSample("late", 1, late);
    StartSample("early", 1, late - absl::Milliseconds(20));
  }
  StartSample("stays", 1);
  EXPECT_THAT(WaitForLines(2), ElementsAre("early: DEADLINE_EXCEEDED", "late: DEADLINE_EXCEEDED"));
  EXPECT_GE(absl::Now(), late);
  EXPECT_EQ(table->info().waiting_samples, 1);
  Insert(1);
  EXPECT_THAT(Written(), ElementsAre("stays: 1"));
}

TEST_F(TableWaitingTest, CancelTakesACallOutOfItsQueue) {
  OpenQueue(1);
  const auto sample = StartSample("s", 1);
  table->Cancel(sample);
  table->Cancel(sample);
  table->Cancel(0);
  EXPECT_THAT(Written(), ElementsAre("s: CANCELLED"));
  Insert(1);
  const auto blocker = StartInsert("b", 2);
  StartInsert("c", 3);
  table->Cancel(blocker);
  Sample(1);
  EXPECT_THAT(Written(), ElementsAre("b: CANCELLED", "c: ok"));
}

TEST_F(TableWaitingTest, CloseEndsWaitingAndLaterCalls) {
  OpenQueue(1);
  StartSample("s", 1);
  table->Close();
  StartSample("later", 1, kPast);
  StartInsert("i", 1);
  EXPECT_THAT(Written(), ElementsAre("s: CANCELLED", "later: CANCELLED", "i: CANCELLED"));
  EXPECT_TRUE(absl::IsCancelled(table->MutateItems({}, {1})));
  table->Close();
  table->Reopen();
  EXPECT_TRUE(Insert(1));
}

TEST_F(TableWaitingTest, DestroyingATableEndsWaitingCalls) {
  OpenQueue(1);
  StartSample("s", 1, absl::Now() + absl::Hours(1));
  table.reset();
  EXPECT_THAT(Written(), ElementsAre("s: CANCELLED"));
}

TEST_F(TableWaitingTest, DeletesResetAndRestoreUnblock) {
  auto options = Options();
  options.rate_limiter = {1, 2, -kAny, 0};  // Two items, then no more.
  Open(options);
  Insert(1);
  Insert(2);
  const TableSnapshot full = table->Snapshot();
  StartInsert("after delete", 3);
  ASSERT_TRUE(table->MutateItems({}, {1}).ok());
  EXPECT_THAT(Written(), ElementsAre("after delete: ok"));
  StartInsert("after reset", 4);
  table->Reset();
  EXPECT_THAT(Written(), ElementsAre("after reset: ok"));
  Open(options);
  StartSample("after restore", 1);
  ASSERT_TRUE(table->Restore(full).ok());
  EXPECT_THAT(Written(), ElementsAre("after restore: 1"));
}

TEST_F(TableWaitingTest, ACallbackMayCallTheTable) {
  OpenQueue(2);
  Keys keys;
  std::function<void()> next = [&] {
    table->SampleAsync(1, absl::InfiniteFuture(), [&](auto samples) {
      if (!samples.ok()) return;
      keys.push_back(samples->front().item.key);
      table->info();
      next();
    });
  };
  next();
  for (int key : {1, 2, 3}) EXPECT_TRUE(Insert(key));
  EXPECT_THAT(keys, ElementsAre(1, 2, 3));
  table->Close();
}

TEST_F(TableWaitingTest, InfoAndLogSayWhatBlocks) {
  base::Mutex mutex;
  base::CondVar changed;
  std::vector<std::string> lines;
  base::SetLogSink([&](base::LogLevel, const std::string& line) {
    base::MutexLock lock(&mutex);
    lines.push_back(line);
    changed.NotifyAll();
  });
  auto options = Options();
  options.rate_limiter = {1, 3, -kAny, kAny};
  options.log_waiting_after = absl::Milliseconds(5);
  Open(options);
  EXPECT_EQ(table->info().blocked_sample, "");
  StartSample("s", 1);
  const std::string why = table->info().blocked_sample;
  EXPECT_NE(why, "");
  {
    base::MutexLock lock(&mutex);
    changed.WaitUntil(&mutex, absl::Now() + absl::Seconds(30), [&] { return lines.size() > 2; });
    ASSERT_GE(lines.size(), 3);
    EXPECT_THAT(lines[0], HasSubstr("Table t: 1 waiting sample call(s)"));
    EXPECT_THAT(lines[0], HasSubstr(why));
  }
  table->Close();
  base::SetLogSink(nullptr);
}

TEST_F(TableWaitingTest, SynchronousCallsBlockTheirThread) {
  OpenQueue(1);
  Keys keys;
  std::thread sampler([&] {
    for (int i = 0; i < 100; ++i) keys.push_back(table->Sample(1)->front().item.key);
  });
  for (int key = 0; key < 100; ++key) EXPECT_TRUE(table->InsertOrAssign(MakeItem(key)).ok());
  sampler.join();
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i], i);
}

}  // namespace
}  // namespace gear_reverb::table
