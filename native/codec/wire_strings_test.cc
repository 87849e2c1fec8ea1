#include "native/codec/wire_strings.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "native/base/testing_rounds.h"
#include "native/codec/testing_util.h"
#include "native/codec/varint.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::codec {
namespace {

std::string Packed(const std::vector<std::string>& values) {
  return tensor::PackStrings(std::vector<absl::string_view>(values.begin(), values.end()));
}

std::vector<std::string> RandomStrings(std::mt19937_64& random) {
  std::vector<std::string> values(random() % 20);
  for (std::string& value : values) {
    value.resize(random() % 10 == 0 ? random() % 20000 : random() % 200);
    for (char& c : value) c = static_cast<char>(random());
  }
  return values;
}

TEST(WireStringsTest, TheWireIsLengthsThenText) {
  EXPECT_EQ(WireFromPacked(Bytes(Packed({"ab", "", "c"})), 3), std::string("\2\0\1abc", 6));
  EXPECT_EQ(WireFromPacked(Bytes(Packed({})), 0), "");
  const std::string longer(300, 'x');
  EXPECT_EQ(WireFromPacked(Bytes(Packed({longer})), 1), "\xac\x02" + longer);
}

TEST(WireStringsTest, RoundTrips) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> values = RandomStrings(random);
    const std::string packed = Packed(values);
    const auto back =
        PackedFromWire(Bytes(WireFromPacked(Bytes(packed), values.size())), values.size());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, packed);
  }
}

TEST(WireStringsTest, MalformedWireIsRefused) {
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
  const std::vector<std::pair<std::string, int64_t>> wires = {
      {"", 1},
      {"\1", -1},
      {"\1a", INT64_MAX},
      {"\1a", INT64_MIN},
      {"\1a", 0},  // Text without a string.
      {"\2a", 1},
      {"\1ab", 1},      // Too little, too much text.
      {"\x80\x80", 1},  // Length cut short.
      {huge, 1},
      {"\1" + huge + "a", 2},                           // Lengths that would wrap a sum.
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 1},  // Length above 64 bits.
      {std::string("\1\1\0", 3), 3},                    // Lengths reach beyond the end.
      {std::string("\3\0\0\0", 4), 4},  // The first length was possible, the next ate its text.
  };
  for (const auto& [wire, count] : wires) {
    EXPECT_EQ(PackedFromWire(Bytes(wire), count).status().code(),
              absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(wire) << " " << count;
  }
}

TEST(WireStringsTest, MutatedWireGivesAnErrorOrAWellFormedPacking) {
  std::mt19937_64 random(4);
  for (int round = 0; round < base::testing::Rounds(5000); ++round) {
    const std::vector<std::string> values = RandomStrings(random);
    std::string wire = WireFromPacked(Bytes(Packed(values)), values.size());
    if (wire.empty()) continue;
    const size_t at = random() % std::min<size_t>(wire.size(), 30);
    switch (random() % 3) {
      case 0: wire[at] = static_cast<char>(random()); break;
      case 1: wire.erase(at, 1 + random() % 4); break;
      case 2: wire.insert(at, 1, static_cast<char>(random())); break;
    }
    const std::vector<std::byte> exact(Bytes(wire).begin(), Bytes(wire).end());
    const int64_t count = values.size() + random() % 3 - 1;
    const auto packed = PackedFromWire(exact, count);
    if (packed.ok()) {
      EXPECT_TRUE(tensor::CheckPackedStrings(Bytes(*packed), count).ok());
      EXPECT_LE(packed->size(), (count + 1) * 8 + wire.size());
    }
  }
}

TEST(VarintTest, RoundTripsAndChecks) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{16384},
                         uint64_t{1} << 35, uint64_t{1} << 63, ~uint64_t{0}}) {
    std::string text;
    AppendVarint(value, &text);
    absl::Span<const std::byte> bytes = Bytes(text);
    EXPECT_EQ(TakeVarint(&bytes), value);
    EXPECT_TRUE(bytes.empty());
    for (size_t cut = 0; cut < text.size(); ++cut) {
      absl::Span<const std::byte> prefix = Bytes(text).first(cut);
      EXPECT_EQ(TakeVarint(&prefix), std::nullopt);
      EXPECT_EQ(prefix.size(), cut);
    }
  }
}

}  // namespace
}  // namespace gear_reverb::codec
