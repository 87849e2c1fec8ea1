// Mistaken messages through a real gRPC server: every call ends, with a reason if it failed, and a
// client without mistakes is served as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "native/base/log.h"
#include "native/rpc/parse.h"
#include "native/server/fuzz_target.h"
#include "native/server/grpc_server.h"

namespace gear_reverb::server::fuzz {
namespace {

using grpc::StatusCode;

grpc::ByteBuffer ToBuffer(const std::string& bytes, Random* random) {
  // In two slices at times: the server then has to put them together.
  std::vector<grpc::Slice> slices;
  const size_t cut = random == nullptr || bytes.empty() ? 0 : (*random)() % bytes.size();
  if (cut > 0) slices.emplace_back(bytes.substr(0, cut));
  slices.emplace_back(bytes.substr(cut));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

struct Answer {
  grpc::Status status;
  std::vector<std::string> messages;
};

class FuzzServerTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "gRPC's library is not built for ThreadSanitizer, which takes all it does with "
                    "its own locks for races.";
#endif
    base::SetLogSink([](base::LogLevel, const std::string&) {});
    service = service::ReplayService::Create(MakeTables(), nullptr).value();
    server = GrpcServer::Create(service, {0, "127.0.0.1"}).value();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server->port()), grpc::InsecureChannelCredentials(), arguments));
  }
  void TearDown() override {
    stub.reset();
    if (server != nullptr) server->Stop();
    base::SetLogSink(nullptr);
  }

  // Sends the messages, one after the other, and reads all answers.
  Answer Call(const std::string& method, const std::vector<std::string>& messages,
              Random* random = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(random == nullptr ? 20000 : 100));
    grpc::CompletionQueue queue;
    const auto call = stub->PrepareCall(&context, method, &queue);
    bool ok = false;
    const auto wait = [&] {
      void* tag;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    bool open = wait();
    for (const std::string& message : messages) {
      if (!open) break;
      call->Write(ToBuffer(message, random), nullptr);
      open = wait();
    }
    if (open) {
      call->WritesDone(nullptr);
      wait();
    }
    Answer answer;
    grpc::ByteBuffer buffer;
    while (true) {
      call->Read(&buffer, nullptr);
      if (!wait()) break;
      const rpc::FlatMessage message = rpc::FlatMessage::Create(buffer).value();
      answer.messages.emplace_back(message.view().data(), message.view().size());
    }
    call->Finish(&answer.status, nullptr);
    wait();
    queue.Shutdown();
    return answer;
  }

  // Inserts an item into the queue, samples it, and compares.
  void ServeWithoutMistakes() {
    ASSERT_TRUE(
        Call(rpc::method::kReset, {rpc::EncodeResetRequest(kQueue).TakeString()}).status.ok());
    const auto chunk = rpc::MakeMixedChunk(77);
    const Answer inserted =
        Call(rpc::method::kInsertStream,
             {MakeInsertRequest({rpc::EncodeChunk(chunk, rpc::Compression::kSnappy).TakeString()},
                                {MakeItem(4711, kQueue, {{{{chunk, 0, 3, 0}}, false}})}, {})});
    ASSERT_TRUE(inserted.status.ok()) << inserted.status.error_message();
    ASSERT_EQ(inserted.messages.size(), 1);
    EXPECT_THAT(rpc::DecodeInsertResponse(inserted.messages[0]).value(),
                testing::ElementsAre(4711));
    const Answer sampled =
        Call(rpc::method::kSampleStream, {MakeSampleRequest(kQueue, 1, absl::Seconds(10))});
    ASSERT_TRUE(sampled.status.ok()) << sampled.status.error_message();
    ASSERT_EQ(sampled.messages.size(), 1);
    const auto entries = rpc::DecodeSampleResponse(sampled.messages[0]).value();
    ASSERT_EQ(entries.size(), 1);
    EXPECT_EQ(rpc::DecodeSampleInfo(entries[0].info)->item.key, 4711);
    const auto back = rpc::DecodeChunk(entries[0].chunks.at(0), *memory::ProcessArena()).value();
    EXPECT_EQ(rpc::BytesOf(back->columns()[0]), rpc::BytesOf(chunk->columns()[0]));
  }

  std::shared_ptr<service::ReplayService> service;
  std::unique_ptr<GrpcServer> server;
  std::unique_ptr<grpc::GenericStub> stub;
};

TEST_F(FuzzServerTest, SurvivesMistakenCallsAndRandomBytes) {
  const char* given = std::getenv("GEAR_REVERB_FUZZ_SEED");
  const uint64_t seed = given == nullptr ? 20261121 : std::strtoull(given, nullptr, 10);
  std::cout << "GEAR_REVERB_FUZZ_SEED=" << seed << "\n";
  Random random(seed);
  ServeWithoutMistakes();
  for (const Method& method : AllMethods()) {
    for (int round = 0; round < 60; ++round) {
      std::vector<std::string> messages = MutatedCall(method, random);
      if (round % 3 == 0) {
        messages.assign(1 + random() % 2, std::string(random() % 200, '\0'));
        for (std::string& message : messages) {
          for (char& c : message) c = static_cast<char>(random());
        }
      }
      const Answer answer = Call(method.path, messages, &random);
      EXPECT_THAT(answer.status.error_code(),
                  testing::AnyOf(StatusCode::OK, StatusCode::INVALID_ARGUMENT,
                                 StatusCode::NOT_FOUND, StatusCode::INTERNAL,
                                 StatusCode::FAILED_PRECONDITION, StatusCode::DEADLINE_EXCEEDED))
          << method.path << ": " << answer.status.error_message();
      EXPECT_EQ(answer.status.ok(), answer.status.error_message().empty()) << method.path;
    }
  }
  ServeWithoutMistakes();
}

TEST_F(FuzzServerTest, ReasonsOfAnyLengthArrive) {
  for (const size_t length : {10, 5000, 200000}) {
    const Answer answer = Call(rpc::method::kReset,
                               {rpc::EncodeResetRequest(std::string(length, '\xff')).TakeString()});
    EXPECT_EQ(answer.status.error_code(), StatusCode::NOT_FOUND) << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), testing::StartsWith("Priority table \xff"));
  }
  ServeWithoutMistakes();
}

TEST_F(FuzzServerTest, CallsThatAreBrokenOffLeaveNothing) {
  Random random(3);
  const Method insert = AllMethods()[0];
  for (int round = 0; round < 30; ++round) Call(insert.path, MutatedCall(insert, random), &random);
  for (const auto& table : service->tables()) table->Reset();
  // Streams that ended for the client may still be ending here.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (service->arena().stats().live_blocks > 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
    for (const auto& table : service->tables()) table->Reset();
  }
  EXPECT_EQ(service->arena().stats().used_bytes, 0);
}

}  // namespace
}  // namespace gear_reverb::server::fuzz
