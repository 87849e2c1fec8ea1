// Waits on an ItemSender that confirmations end, several at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "native/base/interrupt.h"
#include "native/writer/fake_insert_stream.h"
#include "native/writer/item_sender.h"
#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

OutgoingItem MakeItem(uint64_t key) {
  const TensorCopy steps = Stacked({Bytes(8)});
  const storage::ChunkPtr chunk =
      storage::CopyToChunk(*memory::ProcessArena(), key, {}, {steps.view()}).value();
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.push_back({{{chunk, 0, 1, 0}}, false});
  OutgoingItem item;
  item.uses.push_back({chunk, nullptr});
  item.item = {key, "t", 1.0, std::move(trajectory).Build()};
  return item;
}

// Whether the number becomes `value`; it only grows.
bool Becomes(const std::atomic<int>& number, int value) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (number < value && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  return number == value;
}

class ItemSenderWaitTest : public ::testing::Test {
 protected:
  ItemSenderWaitTest() {
    waiting_ = 0;
    base::interrupt_hook = NoteWaiting;
  }
  ~ItemSenderWaitTest() override {
    for (std::thread& thread : threads_) thread.join();
    base::interrupt_hook = nullptr;
  }

  // Returns once `wait` waits, which should end with at most `limit` items unconfirmed.
  void Start(int64_t limit, std::function<absl::Status()> wait) {
    threads_.emplace_back([this, limit, wait = std::move(wait)] {
      EXPECT_TRUE(wait().ok());
      EXPECT_LE(sender_.stats().in_flight_items, limit);
      ++ended_;
    });
    EXPECT_TRUE(Becomes(waiting_, static_cast<int>(threads_.size())));
  }
  void StartUntilAtMost(int64_t limit) {
    Start(limit,
          [this, limit] { return sender_.WaitUntilAtMost(limit, 0, absl::InfiniteFuture()); });
  }
  bool Ended(int count) { return Becomes(ended_, count); }

  // A wait asks, now and then, whether to end.
  static bool NoteWaiting() {
    thread_local const bool noted = ++waiting_ > 0;
    return !noted;
  }

  static inline std::atomic<int> waiting_{0};  // Threads that were seen to wait.
  std::shared_ptr<FakeServer> server_ = std::make_shared<FakeServer>();
  ItemSender sender_{server_, {.max_in_flight_items = 4}};
  std::atomic<int> ended_{0};
  std::vector<std::thread> threads_;
};

TEST_F(ItemSenderWaitTest, EachEndsAtItsLimitInWhateverOrderItBegan) {
  for (uint64_t key = 1; key <= 4; ++key) ASSERT_TRUE(sender_.Submit(MakeItem(key)).ok());
  for (const int64_t limit : {1, 3, 0, 2}) StartUntilAtMost(limit);
  EXPECT_TRUE(Ended(0));
  for (uint64_t key = 4; key >= 1; --key) {  // The last first: the front leaves a gap.
    server_->Confirm({key});
    EXPECT_TRUE(Ended(static_cast<int>(5 - key))) << key;
  }
  EXPECT_EQ(sender_.stats().in_flight_items, 0);
}

TEST_F(ItemSenderWaitTest, ALaterWaitWithALowerLimitOutlastsTheEarlierOne) {
  for (uint64_t key = 1; key <= 3; ++key) ASSERT_TRUE(sender_.Submit(MakeItem(key)).ok());
  StartUntilAtMost(2);
  EXPECT_TRUE(Ended(0));
  StartUntilAtMost(0);
  server_->Confirm({2});
  EXPECT_TRUE(Ended(1));
  server_->Confirm({1, 3});
  EXPECT_TRUE(Ended(2));
}

TEST_F(ItemSenderWaitTest, RoomAndALimitAreAwaitedAtOnce) {
  for (uint64_t key = 1; key <= 4; ++key) ASSERT_TRUE(sender_.Submit(MakeItem(key)).ok());
  StartUntilAtMost(2);
  Start(3, [this] { return sender_.WaitForRoom(absl::InfiniteFuture()); });
  EXPECT_TRUE(Ended(0));
  server_->Confirm({3});
  EXPECT_TRUE(Ended(1));  // There is room.
  server_->Confirm({1});
  EXPECT_TRUE(Ended(2));
  EXPECT_TRUE(sender_.WaitForRoom(absl::InfinitePast()).ok());
}

}  // namespace
}  // namespace gear_reverb::writer
