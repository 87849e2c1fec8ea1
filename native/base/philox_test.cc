#include "native/base/philox.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace gear_reverb::base {
namespace {

using Words = std::array<uint32_t, 4>;

// The known-answer vectors that the authors publish with Random123.
TEST(PhiloxBlockTest, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(PhiloxBlock({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(PhiloxBlock({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(PhiloxBlock({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, NumberIsTheHalfOfItsBlock) {
  const uint64_t block = 0x1122334455667788;
  const Words words = PhiloxBlock({0x55667788, 0x11223344, 0, 0}, {0x89abcdef, 0x01234567});
  const Philox philox(0x0123456789abcdef);
  EXPECT_EQ(philox.At(2 * block), words[0] | (uint64_t{words[1]} << 32));
  EXPECT_EQ(philox.At(2 * block + 1), words[2] | (uint64_t{words[3]} << 32));
}

TEST(PhiloxTest, NextWalksTheStreamAndThePositionCanBeRestored) {
  Philox philox(42);
  std::vector<uint64_t> numbers;
  for (uint64_t n = 0; n < 9; ++n) {
    EXPECT_EQ(philox.position(), n);
    numbers.push_back(philox.Next());
    EXPECT_EQ(numbers.back(), Philox(42).At(n));
  }
  EXPECT_EQ(std::set<uint64_t>(numbers.begin(), numbers.end()).size(), 9u);
  EXPECT_EQ(Philox(42, 5).Next(), numbers[5]);
  EXPECT_NE(Philox(43).Next(), numbers[0]);
}

TEST(PhiloxTest, FillEqualsNextFromEveryPositionAndLength) {
  for (uint64_t position = 0; position < 4; ++position) {
    for (size_t length = 0; length < 9; ++length) {
      Philox one(7, position), many(7, position);
      std::vector<uint64_t> expected(length), numbers(length);
      for (uint64_t& number : expected) number = one.Next();
      many.Fill(absl::MakeSpan(numbers));
      EXPECT_EQ(numbers, expected);
      EXPECT_EQ(many.position(), one.position());
    }
  }
}

TEST(PhiloxTest, DoublesAndBoundedNumbersStayInTheirRange) {
  EXPECT_EQ(Philox::ToDouble(0), 0.0);
  EXPECT_EQ(Philox::ToDouble(~uint64_t{0}), 1.0 - 0x1.0p-53);
  EXPECT_EQ(Philox::ToBelow(~uint64_t{0}, 10), 9u);
  EXPECT_EQ(Philox::ToBelow(~uint64_t{0}, ~uint64_t{0}), ~uint64_t{0} - 1);
  EXPECT_EQ(Philox::ToBelow(~uint64_t{0}, 1), 0u);
  Philox philox(3);
  int histogram[8] = {};
  double sum = 0;
  for (int i = 0; i < 80000; ++i) {
    ++histogram[philox.NextBelow(8)];
    sum += philox.NextDouble();
  }
  double chi_squared = 0;
  for (int count : histogram) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_squared, 24.3);  // The 0.999 quantile of 7 degrees of freedom.
  EXPECT_NEAR(sum / 80000, 0.5, 0.005);
}

TEST(RandomUint64Test, GivesDifferentNumbersThatUseEveryBit) {
  std::set<uint64_t> seen;
  uint64_t ones = 0, zeros = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t bits = RandomUint64();
    seen.insert(bits);
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(ones, ~uint64_t{0});
  EXPECT_EQ(zeros, ~uint64_t{0});
}

}  // namespace
}  // namespace gear_reverb::base
