#include "native/base/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "native/base/log.h"
#include "native/base/testing_timer.h"

namespace gear_reverb::base {
namespace {

// Collects the numbers that closures report, and waits for them.
class Record {
 public:
  void Add(int n) {
    MutexLock lock(&mutex_);
    seen_.push_back(n);
    changed_.NotifyAll();
  }
  std::vector<int> WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    changed_.WaitUntil(&mutex_, absl::Now() + absl::Seconds(30),
                       [&] { return seen_.size() >= count; });
    return seen_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> seen_;
};

TEST(Timer, RunsClosuresInOrderOfTheirDeadlines) {
  Record record;
  const absl::Time start = absl::Now();
  {
    const testing::TimerGate gate;
    for (int i : {3, 1, 2}) {
      Timer::Get().Schedule(start + absl::Milliseconds(20 * i), [&record, i] { record.Add(i); });
    }
  }
  EXPECT_EQ(record.WaitFor(3), (std::vector<int>{1, 2, 3}));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(59));
}

TEST(Timer, RunsAtOnceWhatIsLate) {
  Record record;
  Timer::Get().Schedule(absl::InfinitePast(), [&] { record.Add(1); });
  EXPECT_EQ(record.WaitFor(1), std::vector<int>{1});
}

TEST(Timer, CancelKeepsAClosureFromRunning) {
  Record record;
  const auto id = Timer::Get().Schedule(absl::InfiniteFuture(), [&] { record.Add(1); });
  EXPECT_TRUE(Timer::Get().Cancel(id));
  EXPECT_FALSE(Timer::Get().Cancel(id));
  Timer::Get().Schedule(absl::Now(), [&] { record.Add(2); });
  EXPECT_EQ(record.WaitFor(1), std::vector<int>{2});
}

TEST(Timer, CancelWaitsForARunningClosure) {
  Record record;
  std::atomic<bool> finished{false}, go{false};
  const auto id = Timer::Get().Schedule(absl::Now(), [&] {
    record.Add(1);
    while (!go) std::this_thread::yield();
    finished = true;
  });
  record.WaitFor(1);
  std::thread release([&] { go = true; });
  EXPECT_FALSE(Timer::Get().Cancel(id));
  EXPECT_TRUE(finished);
  release.join();
}

TEST(Timer, AClosureMayScheduleAndCancelItself) {
  Record record;
  std::atomic<Timer::Id> id{0};
  std::atomic<bool> known{false};
  id = Timer::Get().Schedule(absl::Now(), [&] {
    while (!known) std::this_thread::yield();
    EXPECT_FALSE(Timer::Get().Cancel(id));
    Timer::Get().Schedule(absl::Now(), [&] { record.Add(2); });
    record.Add(1);
  });
  known = true;
  EXPECT_EQ(record.WaitFor(2), (std::vector<int>{1, 2}));
}

TEST(Timer, ManyThreadsScheduleAndCancel) {
  std::atomic<int> ran{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto id = Timer::Get().Schedule(absl::Now() + absl::Microseconds(i), [&] { ++ran; });
        if (Timer::Get().Cancel(id)) ++cancelled;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ran + cancelled, 800);
}

TEST(Log, GoesToTheSinkWhileThereIsOne) {
  std::vector<std::string> lines;
  SetLogSink([&](LogLevel, const std::string& text) { lines.push_back(text); });
  Log(LogLevel::kWarning, "one");
  SetLogSink(nullptr);
  Log(LogLevel::kInfo, "to standard error");
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
}

}  // namespace
}  // namespace gear_reverb::base
