#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "native/device/casts.h"
#include "native/device/gather_cases.h"

namespace gear_reverb::device {
namespace {

TEST(TwinTest, GathersAsTheSimplestCodeDoes) {
  for (const CaseSize size : {CaseSize::kSmall, CaseSize::kMedium, CaseSize::kLarge}) {
    for (uint64_t seed = 1; seed <= (size == CaseSize::kLarge ? 3 : 20); ++seed) {
      const GatherCase made = RandomGatherCase(seed, size);
      std::vector<std::byte> output(made.expected.size(), kPoison);
      GatherOnCpu(made.plan.list(), output.data());
      ASSERT_EQ(Difference(made, output), "");
    }
  }
}

TEST(TwinTest, ADifferenceIsFound) {
  const GatherCase made = RandomGatherCase(1, CaseSize::kSmall);
  std::vector<std::byte> output = made.expected;
  EXPECT_EQ(Difference(made, output), "");
  output[made.plan.rows()[7].destination] ^= std::byte{1};
  EXPECT_NE(Difference(made, output), "");
}

TEST(GatherPlanTest, TilesCoverEveryWindowAndStartAligned) {
  const GatherCase made = RandomGatherCase(3, CaseSize::kMedium);
  uint64_t tile = 0;
  for (const Row& row : made.plan.rows()) {
    EXPECT_EQ(row.first_tile, tile);
    // Where the second tile starts in the output.
    const uint64_t second = (kTileBytes - row.skew) * OutputBytes(row.kind) / SourceBytes(row.kind);
    EXPECT_EQ((row.destination + second) % kTileAlignment, 0u);
    tile += (row.window_bytes + row.skew + kTileBytes - 1) / kTileBytes;
  }
  EXPECT_EQ(made.plan.tile_count(), tile);
}

TEST(GatherPlanTest, AWindowPastFourGigabytesHasItsOwnOffsets) {
  GatherPlan plan;
  const std::byte data[8] = {};
  const uint64_t far = uint64_t{5} << 30;
  plan.AddRow(RowKind::kCopy, far, 0, far);
  plan.AddPiece(data, far);
  plan.AddRow(RowKind::kCopy, 2 * far, 0, 8);
  plan.AddPiece(data, 8);
  EXPECT_EQ(plan.rows()[1].first_tile, far / kTileBytes);
  EXPECT_EQ(plan.source_bytes(), far + 8);
}

float FromFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits >> 15 != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

TEST(CastTest, EveryFloat16IsItself) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) continue;  // NaN.
    ASSERT_EQ(ToFloat16(FromFloat16(bits)), bits);
  }
}

// Between two neighbours a float goes to the nearer one, and from the middle to the even one.
TEST(CastTest, Float16RoundsToTheNearestAndTiesToEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const float low = FromFloat16(bits), high = FromFloat16(bits + 1), middle = (low + high) / 2;
    ASSERT_EQ(ToFloat16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 1e30f)), bits + 1);
    ASSERT_EQ(ToFloat16(-middle), 0x8000 | ToFloat16(middle));
  }
  EXPECT_EQ(ToFloat16(65519.99f), 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f), 0x7c00);
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(ToFloat16(-std::nanf("")), 0x7fff);
}

TEST(CastTest, Bfloat16RoundsToTheNearestAndTiesToEven) {
  for (uint32_t high = 0; high < 0x7f80; ++high) {
    const auto at = [&](uint32_t low) {
      return ToBfloat16(std::bit_cast<float>(high << 16 | low));
    };
    ASSERT_EQ(at(0), high);
    ASSERT_EQ(at(0x7fff), high);
    ASSERT_EQ(at(0x8000), high + high % 2);
    ASSERT_EQ(at(0x8001), high + 1);
  }
  EXPECT_EQ(ToBfloat16(std::nanf("")), 0x7fff);
  EXPECT_EQ(ToBfloat16(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(CastTest, BytesBecomeTheUnitInterval) {
  EXPECT_EQ(UnitToFloat16(0), 0);
  EXPECT_EQ(UnitToFloat16(255), 0x3c00);  // 1.0
  for (int i = 1; i < 256; ++i) {
    EXPECT_NEAR(FromFloat16(UnitToFloat16(i)), i / 255.0, 0.0003) << i;
    EXPECT_GT(UnitToFloat16(i), UnitToFloat16(i - 1));
  }
}

}  // namespace
}  // namespace gear_reverb::device
