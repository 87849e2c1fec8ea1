// What a server confirms is checked against what it was sent.
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "native/client/shm_connection.h"
#include "native/shm/handshake.h"
#include "native/shm/key_runs.h"

namespace gear_reverb::client {
namespace {

using shm::MessageType;

// Says of every insert stream, as soon as it is open, that `confirmed` were inserted.
class ConfirmingServer {
 public:
  explicit ConfirmingServer(std::string confirmed) : confirmed_(std::move(confirmed)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~ConfirmingServer() {
    stopping_ = true;
    thread_.join();
  }

  const std::string name = shm::Socket::RandomName();
  const std::string token = std::string(shm::kTokenBytes, 't');

 private:
  struct Peer {
    shm::Socket socket;
    shm::FrameReader reader;
  };

  void Serve() {
    std::vector<Peer> peers;
    while (!stopping_) {
      if (auto socket = listener_.Accept(); socket.ok()) peers.push_back({*std::move(socket), {}});
      for (Peer& peer : peers) Answer(peer);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  void Answer(Peer& peer) {
    if (!peer.reader.Receive(peer.socket, nullptr).ok()) return;
    const auto frame = peer.reader.Next();
    if (!frame.ok() || !frame->has_value() || (*frame)->type != MessageType::kHello) return;
    ASSERT_TRUE(peer.socket.Send(shm::MakeFrame(MessageType::kWelcome)).ok());
    if (*shm::CheckHello(**frame, token) != shm::Role::kInsert) return;
    ASSERT_TRUE(peer.socket.Send(shm::MakeFrame(MessageType::kConfirmed, confirmed_)).ok());
  }

  const std::string confirmed_;
  const shm::Socket listener_ = *shm::Socket::Listen(name);
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

std::string Runs(const std::vector<shm::KeyRun>& runs) {
  return {reinterpret_cast<const char*>(runs.data()), runs.size() * sizeof(shm::KeyRun)};
}

// What inserting items 10, 11 and 20 gives.
absl::Status InsertConfirmed(const std::string& body, int64_t* count) {
  ConfirmingServer server(body);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  const auto connection =
      *ShmConnection::Connect(server.name, server.token, nullptr, true, deadline);
  const std::vector<int32_t> values(3, 7);
  const auto rows = *storage::StackedRows::Create(
      {{tensor::DType::kInt32,
        {3},
        {reinterpret_cast<const std::byte*>(values.data()), 3 * sizeof(int32_t)}}});
  const std::string table = "t";
  const std::vector<uint64_t> keys = {10, 11, 20};
  const std::vector<double> priorities(3, 1);
  ConfirmedItems confirmed(3);
  const absl::Status status =
      connection->InsertStacked({table, rows, keys, priorities}, deadline, &confirmed);
  *count = confirmed.count;
  return status;
}

TEST(ShmConfirmedTest, AllItemsOnceInAnyOrder) {
  int64_t count;
  for (const auto& body :
       {Runs({{10, 2}, {20, 1}}), Runs({{20, 1}, {10, 2}}), Runs({{11, 1}, {10, 1}, {20, 1}})}) {
    EXPECT_TRUE(InsertConfirmed(body, &count).ok());
    EXPECT_EQ(count, 3);
  }
}

TEST(ShmConfirmedTest, WhatWasNotSentIsAnError) {
  const std::map<std::string, int64_t> confirmed_of = {
      {Runs({{10, 4}}), 0},           {Runs({{10, UINT64_MAX}}), 0}, {Runs({{10, 0}}), 0},
      {Runs({{10, 1}}).substr(1), 0}, {Runs({{10, 3}}), 2},          {Runs({{10, 1}, {10, 1}}), 1},
      {Runs({{20, 1}, {20, 1}}), 1},  {Runs({{9, 2}}), 0},
  };
  for (const auto& [body, confirmed] : confirmed_of) {
    int64_t count;
    EXPECT_TRUE(absl::IsInternal(InsertConfirmed(body, &count)));
    EXPECT_EQ(count, confirmed);
  }
}

TEST(ShmConfirmedTest, AStreamThatHasSentNothingHasNothingConfirmed) {
  ConfirmingServer server(Runs({{10, 1}}));
  const auto connection = *ShmConnection::Connect(server.name, server.token, nullptr, true,
                                                  absl::Now() + absl::Seconds(20));
  std::promise<absl::Status> end;
  const auto stream = connection->OpenInsertStream(
      {[](absl::Span<const uint64_t>) { ADD_FAILURE() << "It was told of an item."; },
       [&](absl::Status status) { end.set_value(std::move(status)); }});
  std::future<absl::Status> ended = end.get_future();
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(absl::IsInternal(ended.get()));
}

}  // namespace
}  // namespace gear_reverb::client
