// A server of shared memory, and clients of it in as few words as possible.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "native/server/shm_server.h"
#include "native/shm/control_records.h"
#include "native/shm/drawn_record.h"
#include "native/shm/encoding.h"
#include "native/shm/frames.h"
#include "native/shm/handshake.h"
#include "native/shm/insert_records.h"
#include "native/shm/key_runs.h"
#include "native/shm/ring.h"

namespace gear_reverb::server {

using shm::MessageType;

inline constexpr size_t kRingBytes = size_t{64} << 10;

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

  // Items of one step each, with the values `first`, `first` + 1, …, of one chunk. Their keys begin
  // with `first` too, and are `apart`.
  static std::string RowsBytes(uint64_t chunk_key, uint64_t first, int64_t count,
                               const std::string& table = "t", double priority = 1,
                               uint64_t apart = 1) {
    std::vector<int32_t> values(count);
    std::vector<uint64_t> keys(count);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<int32_t>(first + i);
      keys[i] = first + i * apart;
    }
    const tensor::TensorView column{
        tensor::DType::kInt32,
        {count},
        {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(int32_t)}};
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
        const auto keys = shm::DecodeKeyRuns(message.body, 1 << 20);
        if (!keys.ok()) {
          ADD_FAILURE() << keys.status();
          break;
        }
        confirmed += keys->size();
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

}  // namespace gear_reverb::server
