#include "native/dm_checkpoint/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace gear_reverb::dm_checkpoint {
namespace {

TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // The check value of CRC catalogues.
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32cTest, EveryLengthAgreesWithBitByBit) {
  std::string bytes;
  for (int length = 0; length < 70; ++length) {
    uint32_t expected = ~0u;
    for (const char c : bytes) {
      expected ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) expected = expected >> 1 ^ (expected & 1 ? 0x82f63b78 : 0);
    }
    EXPECT_EQ(Crc32c(bytes), ~expected);
    bytes.push_back(static_cast<char>(37 * length + 11));
  }
}

}  // namespace
}  // namespace gear_reverb::dm_checkpoint
