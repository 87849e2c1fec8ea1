#include "native/writer/item_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "native/base/interrupt.h"
#include "native/base/status.h"
#include "native/writer/fake_insert_stream.h"
#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ItemSenderTest : public ::testing::Test {
 protected:
  ItemSenderTest() {
    options_.min_backoff = absl::Milliseconds(1);
    options_.max_backoff = absl::Milliseconds(4);
  }
  ~ItemSenderTest() override {
    sender_ = nullptr;
    EXPECT_EQ(server_->misuse(), "");
  }

  ItemSender& sender() {
    if (sender_ == nullptr) sender_ = std::make_unique<ItemSender>(server_, options_);
    return *sender_;
  }

  static storage::ChunkPtr MakeChunk(uint64_t key, int64_t bytes = 8) {
    const TensorCopy steps = Stacked({Bytes(bytes)});
    return storage::CopyToChunk(*memory::ProcessArena(), key, {}, {steps.view()}).value();
  }

  // An item of these chunks; `user`: an item to come may use them too.
  static OutgoingItem MakeItem(uint64_t key, const std::vector<storage::ChunkPtr>& chunks,
                               std::shared_ptr<const void> user = nullptr) {
    storage::TrajectoryBuilder trajectory;
    OutgoingItem item;
    for (const storage::ChunkPtr& chunk : chunks) {
      trajectory.columns.push_back({{{chunk, 0, 1, 0}}, false});
      item.uses.push_back({chunk, user});
    }
    item.item = {key, "t", 1.0, std::move(trajectory).Build()};
    return item;
  }
  absl::Status Submit(uint64_t key, const std::vector<storage::ChunkPtr>& chunks) {
    return sender().Submit(MakeItem(key, chunks));
  }

  static absl::Time Soon() { return absl::Now() + absl::Milliseconds(30); }

  std::shared_ptr<FakeServer> server_ = std::make_shared<FakeServer>();
  SenderOptions options_;
  std::unique_ptr<ItemSender> sender_;
};

TEST_F(ItemSenderTest, NoStreamIsOpenedBeforeThereIsAnItem) {
  EXPECT_TRUE(sender().WaitForRoom(absl::InfiniteFuture()).ok());
  EXPECT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
  EXPECT_EQ(server_->streams(), 0);
}

TEST_F(ItemSenderTest, AChunkIsKeptAsLongAsItHasAUser) {
  const auto a = MakeChunk(1), b = MakeChunk(2);
  auto user = std::make_shared<int>();
  ASSERT_TRUE(sender().Submit(MakeItem(10, {a}, user)).ok());
  ASSERT_TRUE(Submit(11, {b}).ok());
  user = nullptr;
  ASSERT_TRUE(Submit(12, {b}).ok());
  const auto sent = server_->items();
  EXPECT_THAT(sent[0].keep_chunk_keys, ElementsAre(1));
  EXPECT_THAT(sent[1].keep_chunk_keys, ElementsAre(1));
  EXPECT_THAT(sent[2].keep_chunk_keys, IsEmpty());
  EXPECT_THAT(sent[2].new_chunk_keys, ElementsAre(2));
}

TEST_F(ItemSenderTest, TheItemItselfIsNoUser) {
  OutgoingItem item = MakeItem(10, {MakeChunk(1)}, std::make_shared<int>());
  ASSERT_TRUE(sender().Submit(std::move(item)).ok());
  EXPECT_THAT(server_->items()[0].keep_chunk_keys, IsEmpty());
}

TEST_F(ItemSenderTest, BytesOfAChunkCountOnceAndOnlyWhileUnconfirmed) {
  const auto a = MakeChunk(1, 100), b = MakeChunk(2, 10);
  ASSERT_TRUE(Submit(10, {a}).ok());
  ASSERT_TRUE(Submit(11, {a, b}).ok());
  EXPECT_EQ(sender().stats().in_flight_bytes, 110);
  EXPECT_EQ(sender().stats().in_flight_items, 2);
  server_->Confirm({10, 99});  // 99 is nobody's.
  ASSERT_TRUE(sender().WaitUntilAtMost(1, 0, absl::InfiniteFuture()).ok());
  EXPECT_EQ(sender().stats().in_flight_bytes, 110);
  server_->Confirm({11});
  ASSERT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
  EXPECT_EQ(sender().stats().in_flight_bytes, 0);
}

TEST_F(ItemSenderTest, OnlyUnconfirmedItemsHoldTheirChunks) {
  const size_t blocks = memory::ProcessArena()->stats().live_blocks;
  for (uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(Submit(10 + i, {MakeChunk(i + 1)}).ok());
  EXPECT_EQ(memory::ProcessArena()->stats().live_blocks, blocks + 2);
  server_->ForgetItems();
  server_->Confirm({10});
  ASSERT_TRUE(sender().WaitUntilAtMost(1, 0, absl::InfiniteFuture()).ok());
  sender().Stop(absl::CancelledError("done"));
  EXPECT_EQ(memory::ProcessArena()->stats().live_blocks, blocks);
}

TEST_F(ItemSenderTest, ThereIsRoomUpToTheLimitOfItems) {
  options_.max_in_flight_items = 2;
  const auto a = MakeChunk(1);
  ASSERT_TRUE(Submit(10, {a}).ok());
  EXPECT_TRUE(sender().WaitForRoom(Soon()).ok());
  ASSERT_TRUE(Submit(11, {a}).ok());
  const absl::Status status = sender().WaitForRoom(Soon());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 items with 8 bytes in flight"));
  server_->ConfirmAll();
  EXPECT_TRUE(sender().WaitForRoom(absl::InfiniteFuture()).ok());
}

TEST_F(ItemSenderTest, ThereIsRoomUpToTheLimitOfBytes) {
  options_.max_in_flight_bytes = 100;
  ASSERT_TRUE(Submit(10, {MakeChunk(1, 100)}).ok());
  EXPECT_TRUE(sender().WaitForRoom(Soon()).ok());
  ASSERT_TRUE(Submit(11, {MakeChunk(2, 1)}).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(sender().WaitForRoom(Soon())));
  options_.max_in_flight_bytes = 0;
  ItemSender unlimited(std::make_shared<FakeServer>(), options_);
  ASSERT_TRUE(unlimited.Submit(MakeItem(12, {MakeChunk(3, 1 << 20)})).ok());
  EXPECT_TRUE(unlimited.WaitForRoom(Soon()).ok());
}

TEST_F(ItemSenderTest, AnItemForAnAbsentServerIsQueuedAndSentOnceItIsThere) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  ASSERT_TRUE(server_->WaitForStreams(5));  // It is tried again and again.
  ASSERT_TRUE(Submit(11, {MakeChunk(2)}).ok());
  server_->set_refuse(absl::OkStatus());
  ASSERT_TRUE(server_->WaitForItems(2));
  EXPECT_EQ(server_->items()[0].item.key, 10);
  EXPECT_EQ(server_->items()[1].item.key, 11);
}

TEST_F(ItemSenderTest, AResentChunkIsKeptForTheItemsBehind) {
  const auto a = MakeChunk(1), b = MakeChunk(2);
  ASSERT_TRUE(Submit(10, {a}).ok());
  ASSERT_TRUE(Submit(11, {b}).ok());
  ASSERT_TRUE(Submit(12, {a}).ok());
  server_->End(absl::UnavailableError("lost"));
  ASSERT_TRUE(server_->WaitForItems(6));
  const auto sent = server_->items();
  EXPECT_THAT(sent[3].keep_chunk_keys, ElementsAre(1));
  EXPECT_THAT(sent[4].keep_chunk_keys, ElementsAre(1));
  EXPECT_THAT(sent[5].new_chunk_keys, IsEmpty());
  EXPECT_THAT(sent[5].keep_chunk_keys, IsEmpty());
}

TEST_F(ItemSenderTest, AnItemSubmittedDuringAResendFindsItsChunksKept) {
  const auto a = MakeChunk(1);
  auto user = std::make_shared<int>();
  const std::weak_ptr<int> watched = user;
  ASSERT_TRUE(Submit(9, {MakeChunk(2)}).ok());
  ASSERT_TRUE(sender().Submit(MakeItem(10, {a}, user)).ok());
  OutgoingItem last = MakeItem(11, {a}, std::move(user));  // Now the only user.
  std::thread submit;
  bool resending = false;
  // While item 9 is sent again, before it is decided what to keep after item 10 …
  server_->set_on_send([&](const NewItem& item) {
    if (item.key != 9 || std::exchange(resending, true)) return;
    submit = std::thread([&] { EXPECT_TRUE(sender().Submit(std::move(last)).ok()); });
    // … item 11 has time to come in. It must wait its turn as a user of its chunk.
    const absl::Time end = absl::Now() + absl::Milliseconds(50);
    while (!watched.expired() && absl::Now() < end) std::this_thread::yield();
  });
  server_->End(absl::UnavailableError("lost"));
  ASSERT_TRUE(server_->WaitForItems(5));
  submit.join();
  const auto sent = server_->items();
  EXPECT_EQ(sent[3].item.key, 10);
  EXPECT_THAT(sent[3].new_chunk_keys, ElementsAre(1));
  EXPECT_THAT(sent[3].keep_chunk_keys, ElementsAre(1));
  EXPECT_EQ(sent[4].item.key, 11);
  EXPECT_THAT(sent[4].new_chunk_keys, IsEmpty());
}

TEST_F(ItemSenderTest, AStreamThatEndsWithNothingUnconfirmedIsReopenedForTheNextItem) {
  server_->set_auto_confirm(true);
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  ASSERT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
  server_->End(absl::OkStatus());  // Not asked for, so no better than an error.
  ASSERT_TRUE(Submit(11, {MakeChunk(2)}).ok());
  EXPECT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
  EXPECT_EQ(server_->streams(), 2);
}

TEST_F(ItemSenderTest, WaitsForAnAbsentServerEnd) {
  options_.max_in_flight_items = 1;
  options_.max_unavailable = absl::Milliseconds(20);
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  for (const absl::Status& status : {sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()),
                                     sender().WaitForRoom(absl::InfiniteFuture())}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Connection refused"));
  }
  EXPECT_TRUE(sender().status().ok());  // It may still come back.
  server_->set_auto_confirm(true);
  server_->set_refuse(absl::OkStatus());
  ASSERT_TRUE(server_->WaitForItems(1));
  EXPECT_TRUE(sender().WaitUntilAtMost(0, 0, Soon() + absl::Seconds(10)).ok());
}

TEST_F(ItemSenderTest, AServerThatIsBackButSlowIsWaitedFor) {
  options_.max_unavailable = absl::Milliseconds(5);
  options_.stable_after = absl::Milliseconds(20);
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  server_->End(absl::UnavailableError("lost"));
  ASSERT_TRUE(server_->WaitForItems(2));
  // The new stream lasts: the wait goes on, beyond max_unavailable, until its deadline.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      sender().WaitUntilAtMost(0, 0, absl::Now() + absl::Milliseconds(100))));
}

// A server that has to be looked for, which takes until the test says what came of it.
class HiddenServer final : public FakeServer {
 public:
  absl::StatusOr<std::shared_ptr<InsertStreamFactory>> Reach() override {
    looking.set_value();
    GR_RETURN_IF_ERROR(found.get_future().get());
    return nullptr;
  }
  std::promise<void> looking;
  std::promise<absl::Status> found;
};

TEST_F(ItemSenderTest, NothingWaitsWhileTheServerIsLookedFor) {
  const auto server = std::make_shared<HiddenServer>();
  server_ = server;
  server->set_refuse(absl::UnavailableError("unknown"));
  ASSERT_TRUE(Submit(1, {MakeChunk(1)}).ok());
  ASSERT_EQ(server->looking.get_future().wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
  ASSERT_TRUE(Submit(2, {MakeChunk(2)}).ok());
  EXPECT_EQ(sender().stats().in_flight_items, 2);
  server->ForgetItems();
  server->set_refuse(absl::OkStatus());
  server->found.set_value(absl::OkStatus());
  ASSERT_TRUE(server->WaitForItems(2));
  EXPECT_EQ(server->items()[0].item.key, 1u);
  EXPECT_EQ(server->items()[1].item.key, 2u);
}

TEST_F(ItemSenderTest, AServerThatCannotBeReachedForGoodEndsTheSender) {
  const auto server = std::make_shared<HiddenServer>();
  server_ = server;
  server->set_refuse(absl::UnavailableError("unknown"));
  server->found.set_value(absl::FailedPreconditionError("forbidden"));
  ASSERT_TRUE(Submit(1, {MakeChunk(1)}).ok());
  const absl::Status ended = sender().WaitUntilAtMost(0, 0, absl::Now() + absl::Seconds(20));
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
}

TEST_F(ItemSenderTest, AnyOtherEndIsFinal) {
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  const absl::Status error = absl::InternalError("Could not find sequence chunk");
  server_->End(error);
  EXPECT_EQ(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()), error);
  EXPECT_EQ(sender().WaitForRoom(absl::InfiniteFuture()), error);
  EXPECT_EQ(Submit(11, {MakeChunk(2)}), error);
  EXPECT_EQ(server_->streams(), 1);
}

TEST_F(ItemSenderTest, ADeadlineExceededOfTheServerIsPassedOn) {
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  const absl::Status error = absl::DeadlineExceededError("from the server");
  server_->End(error);
  EXPECT_EQ(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()), error);
}

TEST_F(ItemSenderTest, StopEndsWaitsAndReconnection) {
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  absl::Status waited;
  std::thread wait([&] { waited = sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()); });
  ASSERT_TRUE(server_->WaitForStreams(2));
  const absl::Status reason = absl::FailedPreconditionError("closed");
  sender().Stop(reason);
  sender().Stop(absl::InternalError("later"));
  wait.join();
  EXPECT_EQ(waited, reason);
  EXPECT_EQ(Submit(11, {MakeChunk(2)}), reason);
}

TEST_F(ItemSenderTest, StopDoesNotWaitForALongBackoff) {
  options_.min_backoff = options_.max_backoff = absl::Hours(1);
  server_->set_refuse(absl::UnavailableError("Connection refused"));
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(sender().WaitUntilAtMost(0, 0, Soon())));
  EXPECT_EQ(server_->streams(), 1);
  sender().Stop(absl::CancelledError("done"));
}

TEST_F(ItemSenderTest, TheHostProgramCanInterruptAWait) {
  ASSERT_TRUE(Submit(10, {MakeChunk(1)}).ok());
  base::interrupt_hook = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture())));
  base::interrupt_hook = nullptr;
  server_->ConfirmAll();
  EXPECT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
}

TEST_F(ItemSenderTest, SubmittersOfSeveralThreadsLoseNothing) {
  server_->set_auto_confirm(true);
  sender();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t key = t * 1000 + i + 1;
        EXPECT_TRUE(sender_->Submit(MakeItem(key, {MakeChunk(key)})).ok());
        if (i % 20 == 19) server_->End(absl::UnavailableError("lost"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(sender().WaitUntilAtMost(0, 0, absl::InfiniteFuture()).ok());
  absl::flat_hash_set<uint64_t> keys;
  for (const SentItem& item : server_->items()) keys.insert(item.item.key);
  EXPECT_EQ(keys.size(), 200);
}

}  // namespace
}  // namespace gear_reverb::writer
