// Waits on an ItemSender that confirmations end, several at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

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

class ItemSenderWaitTest : public ::testing::Test {
 protected:
  ~ItemSenderWaitTest() override {
    for (std::thread& thread : threads_) thread.join();
  }

  void Start(std::function<absl::Status()> wait) {
    threads_.emplace_back([this, wait = std::move(wait)] {
      EXPECT_TRUE(wait().ok());
      ++ended_;
    });
  }
  void StartUntilAtMost(int64_t limit) {
    Start([this, limit] { return sender_.WaitUntilAtMost(limit, 0, absl::InfiniteFuture()); });
  }
  // Whether, soon, so many waits have ended, and no more a little later.
  bool Ended(int count) {
    for (int i = 0; ended_ < count && i < 2000; ++i) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(5));
    return ended_ == count;
  }

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
  Start([this] { return sender_.WaitForRoom(absl::InfiniteFuture()); });
  EXPECT_TRUE(Ended(0));
  server_->Confirm({3});
  EXPECT_TRUE(Ended(1));  // There is room.
  server_->Confirm({1});
  EXPECT_TRUE(Ended(2));
  EXPECT_TRUE(sender_.WaitForRoom(absl::InfinitePast()).ok());
}

}  // namespace
}  // namespace gear_reverb::writer
