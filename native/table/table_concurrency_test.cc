// Many threads on one table; and what must never happen under its lock.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "native/table/table_test_util.h"

namespace gear_reverb::table {
namespace {

using TableConcurrencyTest = TableTest;

void RunThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

TEST_F(TableConcurrencyTest, EveryItemOfAQueueIsTakenOnce) {
  auto options = Options();
  options.max_times_sampled = 1;
  options.rate_limiter = QueueOf(3);
  Open(options);
  constexpr int kThreads = 3, kEach = 500;
  base::Mutex mutex;
  Keys taken;
  RunThreads(2 * kThreads, [&](int thread) {
    if (thread < kThreads) {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(table->InsertOrAssign(MakeItem(thread * kEach + i)).ok());
      }
      return;
    }
    for (int got = 0; got < kEach;) {
      const auto samples = table->Sample(std::min(4, kEach - got));
      ASSERT_TRUE(samples.ok());
      got += samples->size();
      base::MutexLock lock(&mutex);
      for (uint64_t key : KeysOf(*samples)) taken.push_back(key);
    }
  });
  std::sort(taken.begin(), taken.end());
  ASSERT_EQ(taken.size(), kThreads * kEach);
  for (size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], i);
  EXPECT_EQ(table->size(), 0);
}

TEST_F(TableConcurrencyTest, CallbacksComeExactlyOnceWhateverHappens) {
  for (int round = 0; round < 5; ++round) {
    auto options = Options(/*max_size=*/20);
    options.sampler = selectors::PrioritizedOptions{0.8};
    options.remover = selectors::UniformOptions{};
    options.max_times_sampled = 3;
    options.rate_limiter = {2, 4, 0, 12};
    Open(options);
    constexpr int kCalls = 300;
    std::vector<std::atomic<int>> called(6 * kCalls);
    std::atomic<int> started{0};
    RunThreads(6, [&](int thread) {
      std::mt19937 random(thread + 100 * round);
      for (int i = 0; i < kCalls; ++i) {
        auto& calls = called[started++];
        const absl::Time deadline = random() % 2 ? absl::InfiniteFuture()
                                                 : absl::Now() + absl::Microseconds(random() % 900);
        const uint64_t key = random() % 50;
        Table::WaitId id = 0;
        switch (thread) {
          case 0:
          case 1:
          case 2:
            id = table->InsertOrAssignAsync(
                MakeItem(key, 1 + key, MakeTrajectory({MakeChunk(key, key % 5)})), deadline,
                [&](absl::Status) { ++calls; });
            break;
          case 3:
          case 4: id = table->SampleAsync(1 + key % 3, deadline, [&](auto) { ++calls; }); break;
          default:
            ++calls;
            (void)table->MutateItems({{key, 2}}, {key + 1});
            table->info();
            if (i % 100 == 50) table->Reset();
            if (i % 100 == 20) table->Snapshot();
            if (i == kCalls - 1) table->Close();
        }
        if (random() % 8 == 0) table->Cancel(id);
      }
    });
    table->Close();
    // Nothing waits any more, but a call that just expired may still be on the timer's thread.
    const auto table_bytes_are_exact = [&] {
      const TableSnapshot snapshot = table->Snapshot();
      std::set<uint64_t> chunks;
      for (const Item& item : snapshot.items) {
        for (const auto& chunk : item.trajectory->chunks()) chunks.insert(chunk->key());
      }
      return snapshot.info.bytes == static_cast<int64_t>(chunks.size() * 8);
    };
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    const auto all_called = [&] {
      return std::all_of(called.begin(), called.end(), [](auto& count) { return count >= 1; });
    };
    while (!(all_called() && table_bytes_are_exact()) && absl::Now() < give_up) {
      std::this_thread::yield();
    }
    for (auto& count : called) EXPECT_EQ(count, 1);
    EXPECT_TRUE(table_bytes_are_exact());
    EXPECT_EQ(table->info().waiting_inserts + table->info().waiting_samples, 0);
  }
}

// The end of its chunk calls the table, which would never return if the lock were held.
TEST_F(TableConcurrencyTest, NoTrajectoryIsFreedUnderTheLock) {
  auto options = Options(/*max_size=*/2);
  options.rate_limiter = {1, 1, -2, 5};
  Open(options);
  int freed = 0;
  struct Home : memory::BlockHome {
    std::function<void()> on_free;
    void Free(std::byte*, size_t) override { on_free(); }
    uint32_t segment_id() const override { return 0; }
    const std::byte* segment_base() const override { return nullptr; }
    const memory::Arena* arena() const override { return nullptr; }
  } home;
  home.on_free = [&] {
    table->size();
    ++freed;
  };
  std::byte byte{};
  const auto trajectory = [&] {
    std::vector<storage::ChunkColumn> columns(1);
    columns[0] = storage::ChunkColumn{tensor::DType::kInt8, {1}, memory::Block(&byte, 1, &home)};
    return MakeTrajectory({storage::Chunk::Create(1, {}, std::move(columns)).value()});
  };
  for (int key : {1, 2, 3}) EXPECT_TRUE(Insert(key, 1, trajectory()));
  EXPECT_EQ(freed, 1) << "evicted";
  Insert(3, 2, trajectory());
  EXPECT_EQ(freed, 2) << "replaced";
  ASSERT_TRUE(table->MutateItems({}, {2}).ok());
  EXPECT_EQ(freed, 3) << "deleted";
  Insert(4, 1, trajectory());
  Insert(5, 1, trajectory());
  EXPECT_FALSE(Insert(6, 1, trajectory()));
  EXPECT_EQ(freed, 5) << "evicted; refused";
  const auto wait = [&] {
    return table->InsertOrAssignAsync(MakeItem(7, 1, trajectory()), absl::InfiniteFuture(),
                                      [](absl::Status) {});
  };
  const auto id = wait();
  ASSERT_NE(id, 0);
  table->Cancel(id);
  EXPECT_EQ(freed, 6) << "cancelled";
  wait();
  table->Close();
  EXPECT_EQ(freed, 7) << "closed";
  table->Reset();
  EXPECT_EQ(freed, 9) << "reset";
}

TEST_F(TableConcurrencyTest, TheTableMayGoWhileItsTimersRun) {
  for (int i = 0; i < 50; ++i) {
    Open();
    StartSample("s", 1, absl::Now() + absl::Microseconds(20 * i));
    table.reset();
  }
  EXPECT_THAT(WaitForLines(50), testing::SizeIs(50));
}

}  // namespace
}  // namespace gear_reverb::table
