#include "native/server/shm_server.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/shm/control_records.h"
#include "native/shm/encoding.h"
#include "native/shm/frames.h"
#include "native/shm/handshake.h"
#include "native/shm/insert_records.h"
#include "native/shm/ring.h"

namespace gear_reverb::server {
namespace {

using shm::MessageType;
using ::testing::HasSubstr;

constexpr size_t kRingBytes = size_t{64} << 10;

// A client in as few words as possible: it sends what it is told and reads what comes.
class Peer {
 public:
  Peer(const std::string& name, const std::string& token, shm::Role role, int ring = -1)
      : socket_(*shm::Socket::Connect(name)) {
    EXPECT_TRUE(socket_.Send(shm::MakeHello(role, token), ring).ok());
  }

  void Send(const std::string& frame) { socket_.Send(frame).IgnoreError(); }

  struct Message {
    MessageType type;
    std::string body;
  };
  // The next message; kEnd with UNAVAILABLE at the end of the connection or if none comes.
  Message Next() {
    while (true) {
      const auto frame = reader_.Next();
      if (frame.ok() && frame->has_value()) {
        return {(*frame)->type, std::string((*frame)->body)};
      }
      const auto received = reader_.Receive(socket_, &fds_);
      if (!received.ok()) return {MessageType::kEnd, shm::EncodeStatus(received.status())};
      if (!*received && !socket_.WaitReadable(absl::Seconds(20))) {
        return {MessageType::kEnd, shm::EncodeStatus(absl::UnavailableError("nothing came"))};
      }
    }
  }
  // The next message of this type, or the end.
  Message Next(MessageType type) {
    while (true) {
      Message message = Next();
      if (message.type == MessageType::kSegment) OnSegment(message);
      if (message.type == type || message.type == MessageType::kEnd) return message;
    }
  }
  absl::Status End() { return shm::DecodeStatus(Next(MessageType::kEnd).body); }

  absl::StatusOr<shm::Drawn> Draw(int64_t n, std::vector<uint64_t> released = {}) {
    shm::DrawRequest request;
    request.table = "t";
    request.n = n;
    request.released = std::move(released);
    request.timeout = absl::Seconds(20);
    request.once = true;
    Send(shm::MakeFrame(MessageType::kDraw, shm::EncodeDrawRequest(request)));
    const Message message = Next(MessageType::kDrawn);
    if (message.type != MessageType::kDrawn) return shm::DecodeStatus(message.body);
    return shm::DecodeDrawn(message.body, [this](uint32_t id) { return segments_.Find(id); });
  }

 private:
  void OnSegment(const Message& message) {
    ASSERT_FALSE(fds_.empty());
    ASSERT_TRUE(segments_.Add(shm::Decoder(message.body).Get<uint32_t>(), fds_.front()).ok());
    fds_.erase(fds_.begin());
  }

  shm::Socket socket_;
  shm::FrameReader reader_;
  std::vector<shm::UniqueFd> fds_;
  shm::SegmentMap segments_;
};

class ShmServerTest : public ::testing::Test {
 protected:
  ShmServerTest() { Start({1, 1, -1e9, 1e9}); }

  void Start(rate_limiter::RateLimiterOptions limiter) {
    server_ = nullptr;
    table::TableOptions options;
    options.name = "t";
    options.sampler = selectors::FifoOptions{};
    options.remover = selectors::FifoOptions{};
    options.max_size = 10000;
    options.rate_limiter = limiter;
    table_ = *table::Table::Create(std::move(options));
    service_ = *service::ReplayService::Create({table_}, nullptr);
    server_ = *ShmServer::Start(service_);
  }

  Peer Control() { return {server_->socket_name(), service_->token(), shm::Role::kControl}; }

  // One int32 column of `steps` steps with value `key`.
  static storage::ChunkPtr MakeChunk(uint64_t key, int64_t steps = 1) {
    const std::vector<int32_t> values(steps, static_cast<int32_t>(key));
    return *storage::CopyToChunk(
        *memory::ProcessArena(), key, {},
        {{tensor::DType::kInt32,
          {steps},
          {reinterpret_cast<const std::byte*>(values.data()), values.size() * 4}}});
  }
  static std::string ChunkBytes(const storage::Chunk& chunk) {
    std::string bytes;
    shm::EncodeChunk(chunk, &bytes);
    const memory::Block& data = chunk.columns()[0].data;
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    return bytes;
  }
  static std::string ItemBytes(uint64_t key, const storage::ChunkPtr& chunk,
                               const std::string& table = "t", int32_t length = 0) {
    const auto steps = length == 0 ? static_cast<int32_t>(chunk->steps()) : length;
    std::string bytes;
    EXPECT_TRUE(shm::EncodeItem(key, 1.0, table,
                                *storage::TrajectoryBuilder::SliceOf(chunk, 0, steps, false), {},
                                &bytes)
                    .ok());
    return bytes;
  }
  static std::string NewItem(uint64_t key, int64_t steps = 1) {
    const storage::ChunkPtr chunk = MakeChunk(key, steps);
    return ChunkBytes(*chunk) + ItemBytes(key, chunk);
  }

  // Items `first`, `first` + 1, … of one step each, their keys as their values, and one chunk.
  static std::string RowsBytes(uint64_t chunk_key, uint64_t first, int64_t count,
                               const std::string& table = "t", double priority = 1) {
    std::vector<int32_t> values(count);
    std::vector<uint64_t> keys(count);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<int32_t>(first + i);
      keys[i] = first + i;
    }
    const tensor::TensorView column{tensor::DType::kInt32,
                                    {count},
                                    {reinterpret_cast<const std::byte*>(values.data()),
                                     values.size() * sizeof(int32_t)}};
    std::string bytes;
    shm::EncodeRows(chunk_key, {}, {&column, 1}, table, 1, false, keys,
                    std::vector<double>(count, priority), &bytes);
    bytes.append(reinterpret_cast<const char*>(column.data.data()), column.data.size());
    return bytes;
  }

  // Straight into the table, through the service's arena.
  void Insert(uint64_t key, int64_t steps = 1) {
    Writer writer(*this);
    writer.Write(NewItem(key, steps));
    EXPECT_EQ(writer.WaitForConfirmed(1), 1u);
  }

  // The other end of an insert stream.
  struct Writer {
    explicit Writer(const ShmServerTest& test)
        : ring(*shm::RingProducer::Create(kRingBytes)),
          peer(test.server_->socket_name(), test.service_->token(), shm::Role::kInsert,
               ring->fd()) {}

    // As fast as there is room.
    void Write(absl::string_view bytes) {
      const absl::Time give_up = absl::Now() + absl::Seconds(20);
      while (!bytes.empty() && absl::Now() < give_up) {
        const size_t now = std::min(bytes.size(), ring->Room());
        std::memcpy(ring->data(), bytes.data(), now);
        ring->Advance(now);
        bytes.remove_prefix(now);
        if (ring->Publish()) peer.Send(shm::MakeFrame(MessageType::kDoorbell));
        if (now == 0) std::this_thread::yield();
      }
      EXPECT_TRUE(bytes.empty());
    }
    size_t WaitForConfirmed(size_t n) {
      size_t confirmed = 0;
      while (confirmed < n) {
        const Peer::Message message = peer.Next(MessageType::kConfirmed);
        if (message.type == MessageType::kEnd) break;
        confirmed += message.body.size() / sizeof(uint64_t);
      }
      return confirmed;
    }

    std::unique_ptr<shm::RingProducer> ring;
    Peer peer;
  };

  // Until `done`, or for long.
  static bool Eventually(const std::function<bool()>& done) {
    const absl::Time give_up = absl::Now() + absl::Seconds(20);
    while (!done()) {
      if (absl::Now() > give_up) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

  std::shared_ptr<table::Table> table_;
  std::shared_ptr<service::ReplayService> service_;
  std::unique_ptr<ShmServer> server_;
};

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
  EXPECT_TRUE(Eventually([this] { return service_->chunks().size() == 0; }));
  Writer writer(*this);
  writer.Write(RowsBytes(70, 1, 3));
  EXPECT_EQ(writer.WaitForConfirmed(3), 3u);
  EXPECT_THAT(std::string(end_of(RowsBytes(70, 4, 3)).message()), HasSubstr("another chunk 70"));
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

}  // namespace
}  // namespace gear_reverb::server
