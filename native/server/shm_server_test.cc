#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "native/server/shm_server_fixture.h"

namespace gear_reverb::server {
namespace {

using ::testing::HasSubstr;

TEST_F(ShmServerTest, RowsGoInTogetherAndAreConfirmed) {
  Writer writer(*this);
  writer.Write(NewItem(1));
  writer.Write(RowsBytes(70, 100, 5000));  // More than the ring has room for.
  writer.Write(RowsBytes(71, 10000, 3));
  writer.Write(NewItem(2));
  EXPECT_EQ(writer.WaitForConfirmed(5005), 5005u);
  const auto samples = table_->Snapshot().items;
  ASSERT_EQ(samples.size(), 5005u);
  EXPECT_EQ(samples[0].key, 1u);
  EXPECT_EQ(samples[5004].key, 2u);
  for (const table::Item& item : samples) {
    int32_t value;
    storage::Gather(item.trajectory->columns[0], reinterpret_cast<std::byte*>(&value));
    ASSERT_EQ(static_cast<uint64_t>(value), item.key);
  }
}

// More confirmations than the socket takes, of keys that are no runs: reading goes on whenever the
// client has read some.
TEST_F(ShmServerTest, AWriterMayReadLate) {
  constexpr size_t kRecords = 40, kRows = 1000;
  for (int round = 0; round < 2; ++round) {
    Writer writer(*this);
    size_t confirmed = 0;
    std::thread reader([&] {
      for (size_t read = 0; confirmed < kRecords * kRows; ++read) {
        if (read % 16 == 0) absl::SleepFor(absl::Microseconds(read % 700));
        const size_t more = writer.WaitForConfirmed(1);
        if (more == 0) break;
        confirmed += more;
      }
    });
    for (size_t i = 0; i < kRecords; ++i) {
      writer.Write(RowsBytes(1 + i, 1 + 2 * i * kRows, kRows, "t", 1, 2));
    }
    reader.join();
    EXPECT_EQ(confirmed, kRecords * kRows);
    table_->Reset();
  }
}

TEST_F(ShmServerTest, RowsWaitForTheRateLimiter) {
  Start({1, 1, 0, 10});
  Writer writer(*this);
  writer.Write(RowsBytes(70, 1, 25));
  writer.Write(RowsBytes(71, 26, 5));
  EXPECT_EQ(writer.WaitForConfirmed(10), 10u);
  EXPECT_EQ(table_->Sample(10)->size(), 10u);
  EXPECT_EQ(writer.WaitForConfirmed(10), 10u);
  EXPECT_EQ(table_->Sample(10)->size(), 10u);
  EXPECT_EQ(writer.WaitForConfirmed(10), 10u);
}

TEST_F(ShmServerTest, RowsThatCannotGoInEndTheStream) {
  const auto end_of = [this](const std::string& bytes) {
    Writer writer(*this);
    writer.Write(bytes);
    return writer.peer.End();
  };
  EXPECT_TRUE(absl::IsNotFound(end_of(RowsBytes(70, 1, 3, "other"))));
  EXPECT_TRUE(absl::IsInvalidArgument(end_of(RowsBytes(70, 1, 3, "t", -INFINITY))));
  EXPECT_EQ(table_->size(), 0);
  EXPECT_TRUE(Eventually([this] { return service_->arena().stats().live_blocks == 0; }));
  Writer writer(*this);
  writer.Write(RowsBytes(70, 1, 3));
  EXPECT_EQ(writer.WaitForConfirmed(3), 3u);
  EXPECT_EQ(table_->size(), 3);
}

TEST_F(ShmServerTest, ItemsGoInAndAreConfirmed) {
  Writer writer(*this);
  for (uint64_t key = 1; key <= 500; ++key) writer.Write(NewItem(key));
  EXPECT_EQ(writer.WaitForConfirmed(500), 500u);
  EXPECT_EQ(table_->size(), 500);
  std::string close;
  shm::EncodeClose(&close);
  writer.Write(close);
  EXPECT_TRUE(writer.peer.End().ok());
}

TEST_F(ShmServerTest, AChunkLargerThanTheRingGoesThrough) {
  Insert(7, 5 * kRingBytes);
  const auto sample = table_->Sample(1);
  ASSERT_TRUE(sample.ok());
  const storage::TrajectoryColumn& column = (*sample)[0].item.trajectory->columns[0];
  EXPECT_EQ(column.length(), static_cast<int64_t>(5 * kRingBytes));
  std::vector<int32_t> values(column.length());
  storage::Gather(column, reinterpret_cast<std::byte*>(values.data()));
  EXPECT_THAT(values, ::testing::Each(7));
}

TEST_F(ShmServerTest, ErrorsNameWhatIsWrong) {
  const storage::ChunkPtr chunk = MakeChunk(5);
  const auto end_after = [this](const std::string& bytes) {
    Writer writer(*this);
    writer.Write(bytes);
    return writer.peer.End();
  };
  EXPECT_THAT(std::string(end_after(ItemBytes(1, chunk)).message()),
              HasSubstr("Could not find sequence chunk 5"));
  EXPECT_TRUE(absl::IsNotFound(end_after(ChunkBytes(*chunk) + ItemBytes(1, chunk, "nowhere"))));
  const absl::Status outside = end_after(ChunkBytes(*chunk) + ItemBytes(1, chunk, "t", 2));
  EXPECT_TRUE(absl::IsInvalidArgument(outside));
  EXPECT_THAT(std::string(outside.message()), HasSubstr("Item 1: Column 0, slice 0"));
  const uint32_t unknown[] = {99, 0}, long_record[] = {1, 0xffffffff};
  const auto bytes_of = [](const uint32_t(&header)[2]) {
    return std::string(reinterpret_cast<const char*>(header), sizeof(header));
  };
  EXPECT_THAT(std::string(end_after(bytes_of(unknown)).message()), HasSubstr("kind of record 99"));
  EXPECT_THAT(std::string(end_after(bytes_of(long_record)).message()), HasSubstr("too long"));
  EXPECT_EQ(table_->size(), 0);
}

TEST_F(ShmServerTest, RandomBytesHarmNobody) {
  std::mt19937_64 random(5);
  const std::string valid = NewItem(1) + NewItem(2);
  for (int round = 0; round < 200; ++round) {
    Writer writer(*this);
    std::string bytes = valid;
    for (int i = 0; i < 5; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    writer.Write(bytes);
  }
  for (int round = 0; round < 200; ++round) {
    Peer peer = Control();
    std::string frame(random() % 200 + 8, '\0');
    for (char& byte : frame) byte = static_cast<char>(random());
    const shm::FrameHeader header{static_cast<uint32_t>(random() % 18),
                                  static_cast<uint32_t>(frame.size() - 8)};
    std::memcpy(frame.data(), &header, sizeof(header));
    peer.Send(frame);
  }
  Insert(77);
}

TEST_F(ShmServerTest, AStrangersTokenIsRefused) {
  Peer peer(server_->socket_name(), std::string(16, 'x'), shm::Role::kControl);
  EXPECT_TRUE(absl::IsPermissionDenied(peer.End()));
}

TEST_F(ShmServerTest, DrawnItemsStayWhileTheyAreLent) {
  Insert(9, 1000);
  Peer peer = Control();
  const auto drawn = peer.Draw(1);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const auto value = [&] {
    int32_t last;
    const batch::Piece& piece = drawn->groups[0].columns[0].pieces[0];
    std::memcpy(&last, piece.data + piece.bytes - sizeof(last), sizeof(last));
    return last;
  };
  EXPECT_EQ(value(), 9);
  table_->Reset();
  EXPECT_EQ(service_->arena().stats().live_blocks, 1u);
  EXPECT_EQ(value(), 9);
  std::string body;
  shm::Encoder(&body).PutArray<uint64_t>({{drawn->lease}});
  peer.Send(shm::MakeFrame(MessageType::kRelease, body));
  EXPECT_TRUE(Eventually([this] { return service_->arena().stats().live_blocks == 0; }));
}

TEST_F(ShmServerTest, AClientThatGoesLosesItsLeases) {
  Insert(9);
  {
    Peer peer = Control();
    ASSERT_TRUE(peer.Draw(1).ok());
    table_->Reset();
    EXPECT_EQ(service_->arena().stats().live_blocks, 1u);
  }
  EXPECT_TRUE(Eventually([this] { return service_->arena().stats().live_blocks == 0; }));
}

TEST_F(ShmServerTest, AStoppedServerSaysSoAndKeepsWhatIsRead) {
  Insert(9);
  {
    Peer reader = Control();
    ASSERT_TRUE(reader.Draw(1).ok());
    Writer writer(*this);
    service_->Stop();
    server_->Stop();
    EXPECT_TRUE(absl::IsUnavailable(reader.End()));
    EXPECT_THAT(std::string(writer.peer.End().message()), HasSubstr("stopped"));
    table_->Reset();
    EXPECT_EQ(service_->arena().stats().live_blocks, 1u);
  }
  EXPECT_TRUE(Eventually([this] { return service_->arena().stats().live_blocks == 0; }));
}

TEST_F(ShmServerTest, AWaitingDrawEndsWithItsClient) {
  {
    Peer peer = Control();
    shm::DrawRequest request;
    request.table = "t";
    request.n = 1;
    peer.Send(shm::MakeFrame(MessageType::kDraw, shm::EncodeDrawRequest(request)));
    EXPECT_TRUE(Eventually([this] { return table_->info().waiting_samples == 1; }));
  }
  EXPECT_TRUE(Eventually([this] { return table_->info().waiting_samples == 0; }));
}

TEST_F(ShmServerTest, EveryRequestIsAnsweredThoughItIsCancelled) {
  Peer client = Control();
  ASSERT_EQ(client.Next().type, MessageType::kWelcome);
  shm::DrawRequest request;
  request.table = "t";
  request.n = 1;
  request.once = true;
  const std::string draw = shm::MakeFrame(MessageType::kDraw, shm::EncodeDrawRequest(request));
  client.Send(draw);
  ASSERT_TRUE(Eventually([&] { return table_->info().waiting_samples == 1; }));
  client.Send(draw + draw + shm::MakeFrame(MessageType::kCancel));
  for (int i = 0; i < 3; ++i) {
    const Peer::Message message = client.Next();
    ASSERT_EQ(message.type, MessageType::kFailed) << i;
    EXPECT_TRUE(absl::IsCancelled(shm::DecodeStatus(message.body))) << message.body;
  }
}

TEST_F(ShmServerTest, ItemsThatWaitHoldTheWriterBack) {
  Start({1, 1, 0, 1});  // An insert, then a sample, in turn.
  Writer writer(*this);
  std::thread writing([&] {
    for (uint64_t key = 1; key <= 3000; ++key) writer.Write(NewItem(key));
  });
  EXPECT_TRUE(Eventually([this] { return table_->info().waiting_inserts >= 900; }));
  // The limit, and the items that go to the table together.
  EXPECT_LE(table_->info().waiting_inserts, 1000 + 64);
  std::thread sampling([&] {
    for (int i = 0; i < 3000; ++i) table_->Sample(1).IgnoreError();
  });
  EXPECT_EQ(writer.WaitForConfirmed(3000), 3000u);
  writing.join();
  sampling.join();
}

TEST_F(ShmServerTest, ManyWritersAndReadersAtOnce) {
  Insert(1);
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 3; ++t) {
    threads.emplace_back([this, t] {
      Writer writer(*this);
      for (uint64_t i = 0; i < 300; ++i) writer.Write(NewItem(t * 1000 + i, 100));
      EXPECT_EQ(writer.WaitForConfirmed(300), 300u);
    });
    threads.emplace_back([this] {
      Peer peer = Control();
      std::vector<uint64_t> leases;
      for (int i = 0; i < 200; ++i) {
        const auto drawn = peer.Draw(8, std::exchange(leases, {}));
        ASSERT_TRUE(drawn.ok()) << drawn.status();
        leases.push_back(drawn->lease);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table_->size(), 901);
}

absl::Status KeepMemory(Peer& peer, absl::string_view body = {}) {
  peer.Send(shm::MakeFrame(MessageType::kKeepMemory, body));
  return shm::DecodeStatus(peer.Next(MessageType::kMemoryKept).body);
}

// How much an arena keeps of a large block that was written and freed.
size_t KeptOfALargeBlock(memory::Arena& arena) {
  constexpr size_t kBytes = size_t{320} << 20;
  {
    const memory::Block block = *arena.Allocate(kBytes);
    for (size_t i = 0; i < kBytes; i += 4096) block.data()[i] = std::byte{1};
  }
  return arena.stats().idle_bytes;
}

TEST_F(ShmServerTest, AClientMayHaveTheMemoryKept) {
  Peer control = Control();
  const Peer::Message welcome = control.Next();
  ASSERT_EQ(welcome.type, MessageType::kWelcome);
  EXPECT_EQ(shm::DecodeWelcome(welcome.body), shm::kKeepsMemory);
  EXPECT_LT(KeptOfALargeBlock(service_->arena()), size_t{300} << 20);
  ASSERT_TRUE(KeepMemory(control).ok());
  ASSERT_TRUE(KeepMemory(control).ok());
  EXPECT_GE(KeptOfALargeBlock(service_->arena()), size_t{320} << 20);
  Insert(1);
  EXPECT_TRUE(control.Draw(1).ok());
}

TEST_F(ShmServerTest, AServerMayBeToldNotToKeepMemoryForClients) {
  ASSERT_EQ(setenv("GEAR_REVERB_KEEP_MEMORY", "0", 1), 0);
  Peer control = Control();
  EXPECT_TRUE(absl::IsFailedPrecondition(KeepMemory(control)));
  EXPECT_LT(KeptOfALargeBlock(service_->arena()), size_t{300} << 20);
  ASSERT_EQ(unsetenv("GEAR_REVERB_KEEP_MEMORY"), 0);
  EXPECT_TRUE(KeepMemory(control).ok());  // The connection went on.
}

TEST_F(ShmServerTest, ARequestToKeepMemoryIsEmpty) {
  Peer control = Control();
  EXPECT_TRUE(absl::IsInvalidArgument(KeepMemory(control, "now")));
}

}  // namespace
}  // namespace gear_reverb::server
