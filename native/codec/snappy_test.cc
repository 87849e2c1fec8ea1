#include "native/codec/snappy.h"

#include <snappy.h>

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/testing_rounds.h"
#include "native/codec/testing_util.h"

namespace gear_reverb::codec {
namespace {

absl::StatusOr<std::string> Decompressed(const std::string& stream, size_t size) {
  std::string out(size, '\x5a');
  auto status = Decompress(Bytes(stream), {reinterpret_cast<std::byte*>(out.data()), size});
  if (!status.ok()) return status;
  return out;
}

// Half noise, half runs.
std::string Payload(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string payload(size, '\0');
  for (size_t i = 0; i < size;) {
    const size_t run = std::min<size_t>(size - i, 1 + random() % 100);
    const bool noise = random() % 2 == 0;
    const char value = static_cast<char>(random());
    for (size_t end = i + run; i < end; ++i) {
      payload[i] = noise ? static_cast<char>(random()) : value;
    }
  }
  return payload;
}

class LiteralTest : public testing::TestWithParam<size_t> {};

TEST_P(LiteralTest, SystemSnappyDecodesTheLiteral) {
  const size_t size = GetParam();
  std::string raw(size, '\0');
  for (size_t i = 0; i < size; ++i) raw[i] = static_cast<char>(i * 2654435761u >> 13);
  const std::string stream = LiteralHeader(size) + raw;
  std::string theirs;
  ASSERT_TRUE(snappy::Uncompress(stream.data(), stream.size(), &theirs));
  EXPECT_TRUE(theirs == raw);
  auto ours = Decompressed(stream, size);
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_TRUE(*ours == raw);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LiteralTest,
                         testing::Values(0, 1, 2, 59, 60, 61, 62, 127, 128, 255, 256, 257, 16383,
                                         16384, 65535, 65536, 65537, (1 << 24) - 1, 1 << 24,
                                         (1 << 24) + 1, base::testing::Rounds(300 << 20)));

TEST(SnappyTest, OnlyWholeLiteralsAreLiterals) {
  const std::string raw(100, 'x');
  const auto bytes = [](const std::string& text) {
    return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
  };
  const std::string stream = LiteralHeader(raw.size()) + raw;
  const auto literal = AsLiteral(bytes(stream));
  ASSERT_TRUE(literal.has_value());
  EXPECT_EQ(literal->data(), bytes(stream).data() + stream.size() - raw.size());
  EXPECT_EQ(literal->size(), raw.size());
  EXPECT_FALSE(AsLiteral(bytes(stream + "x")).has_value());
  EXPECT_FALSE(AsLiteral(bytes(stream.substr(0, stream.size() - 1))).has_value());
  EXPECT_FALSE(AsLiteral(bytes(Compress(bytes(raw)))).has_value());
  EXPECT_FALSE(AsLiteral({}).has_value());
  EXPECT_FALSE(AsLiteral(bytes(LiteralHeader(0))).has_value());
}

TEST(SnappyTest, HeadersOfTheLongestLiterals) {
  EXPECT_EQ(LiteralHeader(kMaxSnappyBytes), "\xff\xff\xff\xff\x0f\xfc\xfe\xff\xff\xff");
  EXPECT_EQ(LiteralHeader(kMaxSnappyBytes + 1), "");
}

TEST(SnappyTest, CompressRoundTrips) {
  for (size_t size : {0, 1, 10, 100, 5000, 100000, 1 << 20}) {
    const std::string raw = Payload(size, size);
    const std::string stream = Compress(Bytes(raw));
    ASSERT_EQ(*UncompressedLength(Bytes(stream)), size);
    auto back = Decompressed(stream, size);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == raw);
    std::string theirs;
    ASSERT_TRUE(snappy::Uncompress(stream.data(), stream.size(), &theirs));
    EXPECT_TRUE(theirs == raw);
  }
}

TEST(SnappyTest, WrongSizeIsRefused) {
  const std::string stream = Compress(Bytes(Payload(1000, 1)));
  EXPECT_EQ(Decompressed(stream, 999).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decompressed(stream, 1001).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decompressed(stream, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SnappyTest, MalformedStreamsAreRefused) {
  const std::vector<std::pair<std::string, size_t>> streams = {
      {"", 0},                                        // No length.
      {"\x80", 0},                                    // Length cut short.
      {"\xff\xff\xff\xff\x1f", 0},                    // Length above 32 bits.
      {std::string("\x80\x80\x80\x80\x80\0", 6), 0},  // Length of six bytes.
      {std::string("\0a", 2), 0},                     // Bytes after an empty stream.
      {std::string("\3\x08"
                   "ab",
                   4),
       3},  // Literal cut short.
      {std::string("\3\x08"
                   "abcd",
                   6),
       3},  // Trailing byte that is no element.
      {std::string("\4\x08"
                   "abc",
                   5),
       4},  // Elements end before the length.
      {"\4\xfc\xff\xff\xff\xff"
       "abcd",
       4},                              // Literal of 4 GiB.
      {"\4\xf4\1", 4},                  // Literal length cut short.
      {std::string("\4\x01\0", 3), 4},  // Copy from offset 0.
      {"\4\x01\x05", 4},                // Copy from before the start.
  };
  for (const auto& [stream, size] : streams) {
    EXPECT_EQ(Decompressed(stream, size).status().code(), absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(stream);
  }
}

TEST(SnappyTest, MutatedStreamsNeverReadOrWriteOutside) {
  std::mt19937_64 random(7);
  for (int round = 0; round < base::testing::Rounds(3000); ++round) {
    const size_t size = 1 + random() % 3000;
    const std::string raw = Payload(size, round);
    std::string stream = random() % 4 == 0 ? LiteralHeader(size) + raw : Compress(Bytes(raw));
    for (int edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % stream.size();
      switch (random() % 4) {
        case 0: stream[at] = static_cast<char>(random()); break;
        case 1: stream[at] ^= static_cast<char>(1 << random() % 8); break;
        case 2: stream.erase(at, random() % 8); break;
        case 3: stream.insert(at, 1 + random() % 3, static_cast<char>(random())); break;
      }
      if (stream.empty()) stream.assign(1, '\x7f');
    }
    // On the heap in exact size, so that the address sanitizer sees any byte outside.
    std::vector<std::byte> exact(stream.size());
    std::memcpy(exact.data(), stream.data(), stream.size());
    std::vector<std::byte> out(size);
    const bool ok = Decompress(exact, absl::MakeSpan(out)).ok();
    std::string theirs;
    const bool valid = snappy::Uncompress(stream.data(), stream.size(), &theirs);
    EXPECT_EQ(ok, valid && theirs.size() == size);
    if (ok) {
      EXPECT_EQ(std::memcmp(out.data(), theirs.data(), size), 0);
    }
  }
}

}  // namespace
}  // namespace gear_reverb::codec
