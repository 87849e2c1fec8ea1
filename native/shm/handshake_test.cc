#include "native/shm/handshake.h"

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace gear_reverb::shm {
namespace {

TEST(HandshakeTest, TellsWhoBelongs) {
  const std::string token(kTokenBytes, 't');
  const auto check = [&](const std::string& hello, const std::string& expected) {
    FrameHeader header;
    std::memcpy(&header, hello.data(), sizeof(header));
    return CheckHello(
        {static_cast<MessageType>(header.type), absl::string_view(hello).substr(sizeof(header))},
        expected);
  };
  EXPECT_EQ(*check(MakeHello(Role::kInsert, token), token), Role::kInsert);
  EXPECT_TRUE(absl::IsPermissionDenied(check(MakeHello(Role::kInsert, "other"), token).status()));
  std::string flipped = MakeHello(Role::kControl, token);
  flipped.back() ^= 1;
  EXPECT_TRUE(absl::IsPermissionDenied(check(flipped, token).status()));
  EXPECT_FALSE(check(MakeHello(static_cast<Role>(9), token), token).ok());
  std::string older = MakeHello(Role::kControl, token);
  older[sizeof(FrameHeader) + sizeof(kMagic)] = static_cast<char>(kVersion - 1);
  EXPECT_FALSE(check(older, token).ok());
  EXPECT_FALSE(check(MakeFrame(MessageType::kDraw, "x"), token).ok());
}

TEST(HandshakeTest, StatusesKeepCodeAndText) {
  const absl::Status status = absl::DeadlineExceededError("late");
  EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
  EXPECT_TRUE(DecodeStatus(EncodeStatus(absl::OkStatus())).ok());
  EXPECT_TRUE(absl::IsInternal(DecodeStatus("x")));
}

}  // namespace
}  // namespace gear_reverb::shm
