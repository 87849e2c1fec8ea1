// A client of a server that shares its memory, and a device that registers it.
#include <cstring>
#include <map>
#include <thread>

#include "gtest/gtest.h"
#include "native/client/shm_connection.h"
#include "native/device/pinned_segments.h"
#include "native/shm/encoding.h"
#include "native/shm/handshake.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::client {
namespace {

using shm::MessageType;

constexpr size_t kSegmentBytes = size_t{1} << 20;

// The server's end of control connections: welcomes, shows one segment, and keeps memory or not.
class OneSegmentServer {
 public:
  OneSegmentServer(std::string welcome, absl::Status kept)
      : welcome_(std::move(welcome)), kept_(std::move(kept)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~OneSegmentServer() {
    stopping_ = true;
    thread_.join();
  }

  const std::string name = shm::Socket::RandomName();
  std::atomic<int> asked{0};

 private:
  struct Connection {
    shm::Socket socket;
    shm::FrameReader reader;
  };

  void Serve() {
    std::vector<Connection> connections;
    while (!stopping_) {
      if (auto socket = listener_.Accept(); socket.ok()) {
        connections.push_back({*std::move(socket), {}});
      }
      for (Connection& connection : connections) Answer(connection);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  void Answer(Connection& connection) {
    if (!connection.reader.Receive(connection.socket, nullptr).ok()) return;
    while (true) {
      const auto frame = connection.reader.Next();
      if (!frame.ok() || !frame->has_value()) return;
      if ((*frame)->type == MessageType::kHello) {
        std::string body;
        shm::Encoder(&body).Put(uint32_t{7});
        const shm::UniqueFd read_only = *shm::OpenReadOnly(memory_.get());
        ASSERT_TRUE(
            connection.socket.Send(shm::MakeFrame(MessageType::kSegment, body), read_only.get())
                .ok());
        ASSERT_TRUE(connection.socket.Send(welcome_).ok());
      } else if ((*frame)->type == MessageType::kKeepMemory) {
        ++asked;
        ASSERT_TRUE(connection.socket
                        .Send(shm::MakeFrame(MessageType::kMemoryKept, shm::EncodeStatus(kept_)))
                        .ok());
      }
    }
  }

  const std::string welcome_;
  const absl::Status kept_;
  const shm::UniqueFd memory_ = *shm::NewSealedMemory("test", kSegmentBytes);
  const shm::Socket listener_ = *shm::Socket::Listen(name);
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// A device that reaches registered memory at other addresses.
class ReadingRegistrar final : public device::Registrar {
 public:
  absl::StatusOr<const std::byte*> Register(std::byte* base, size_t bytes,
                                            bool read_only) override {
    EXPECT_TRUE(read_only);
    EXPECT_EQ(bytes, kSegmentBytes);
    EXPECT_EQ(*base, std::byte{0});
    ++registered;
    return base + (size_t{1} << 40);
  }
  void Unregister(std::byte* base) override {
    EXPECT_EQ(*base, std::byte{0});  // Still mapped.
    --registered;
  }
  std::atomic<int> registered{0};
};

struct RegisteredClient {
  RegisteredClient(std::string welcome, absl::Status kept, uint64_t limit = 1 << 30)
      : server(std::move(welcome), std::move(kept)),
        budget(std::make_shared<device::RegistrationBudget>(limit)) {
    connection = *ShmConnection::Connect(server.name, std::string(16, 't'), nullptr, true,
                                         absl::Now() + absl::Seconds(20));
    segments = std::make_unique<device::PinnedSegments>(connection->memory(), registrar, budget);
    segments->WaitUntilTried();
  }

  OneSegmentServer server;
  std::shared_ptr<device::RegistrationBudget> budget;
  std::shared_ptr<ReadingRegistrar> registrar = std::make_shared<ReadingRegistrar>();
  std::shared_ptr<ShmConnection> connection;
  std::unique_ptr<device::PinnedSegments> segments;
};

TEST(ShmMemoryTest, TheServersSegmentsAreRegisteredOnceItKeepsThem) {
  RegisteredClient f(shm::MakeWelcome(shm::kKeepsMemory), absl::OkStatus());
  EXPECT_EQ(f.server.asked, 1);
  EXPECT_EQ(f.registrar->registered, 1);
  EXPECT_EQ(f.budget->used_bytes(), kSegmentBytes);
  EXPECT_EQ(f.budget->last_error(), "");
  const auto segments = f.connection->memory()->segments();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(f.segments->Find(segments[0].base + 5, 100), segments[0].base + 5 + (size_t{1} << 40));
  // What was registered stays mapped until it no longer is, whatever becomes of the connection.
  f.connection = nullptr;
  f.segments = nullptr;
  EXPECT_EQ(f.registrar->registered, 0);
}

TEST(ShmMemoryTest, ConnectionsToOneServerHaveOneMemory) {
  RegisteredClient f(shm::MakeWelcome(shm::kKeepsMemory), absl::OkStatus());
  EXPECT_EQ(f.connection->memory()->memory(), f.connection->memory()->memory());
}

void ExpectNothingRegistered(RegisteredClient& f, const std::string& why) {
  EXPECT_EQ(f.registrar->registered, 0);
  EXPECT_EQ(f.budget->used_bytes(), 0u);
  EXPECT_NE(f.budget->last_error().find(why), std::string::npos) << f.budget->last_error();
  const auto segments = f.connection->memory()->segments();
  EXPECT_EQ(f.segments->Find(segments[0].base, 1), nullptr);
}

TEST(ShmMemoryTest, AServerThatIsOlderIsNotAsked) {
  RegisteredClient f(shm::MakeFrame(MessageType::kWelcome), absl::OkStatus());
  ExpectNothingRegistered(f, "version");
  EXPECT_EQ(f.server.asked, 0);
}

TEST(ShmMemoryTest, AServerMayRefuse) {
  RegisteredClient f(shm::MakeWelcome(shm::kKeepsMemory),
                     absl::FailedPreconditionError("not this one"));
  ExpectNothingRegistered(f, "not this one");
  EXPECT_EQ(f.server.asked, 1);
}

TEST(ShmMemoryTest, TheClientsLimitHolds) {
  RegisteredClient f(shm::MakeWelcome(shm::kKeepsMemory), absl::OkStatus(), kSegmentBytes - 1);
  ExpectNothingRegistered(f, "over the limit");
}

}  // namespace
}  // namespace gear_reverb::client
