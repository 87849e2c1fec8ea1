#include "native/device/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "native/device/wide_tree.h"

namespace gear_reverb::device {
namespace {

double RandomDouble(std::mt19937_64& random, int spread) {
  return std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                    static_cast<int>(random() % (2 * spread)) - spread);
}

TEST(PowerTest, IsWithinTheStatedErrorOfThePower) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const double x = RandomDouble(random, i % 2 == 0 ? 1020 : 4);
    const double exponent = std::ldexp(static_cast<double>(random() >> 11), -52 - i % 3);
    const long double exact = std::pow(static_cast<long double>(x), exponent);
    if (exact < kMinPower || exact > kMaxPower) {
      ASSERT_EQ(Power(x, exponent), exact < kMinPower ? kMinPower : kMaxPower);
    } else {
      ASSERT_LT(std::abs(Power(x, exponent) / exact - 1), 1e-12L) << x << " ^ " << exponent;
    }
  }
}

TEST(PowerTest, IsExactForZeroAndOne) {
  for (const double x : {0x1p-1000, 0.3, 1.0, 7.25, 1e200}) {
    EXPECT_EQ(Power(x, 1.0), x);
    EXPECT_EQ(Power(x, 0.0), 1.0);
    EXPECT_EQ(Power(1.0, x), 1.0);
  }
  EXPECT_EQ(Power(4.0, 0.5), 2.0);
}

TEST(PowerTest, ClampsWhatWouldUnderflowOrOverflow) {
  const double denormal = std::numeric_limits<double>::denorm_min();
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(Power(denormal, 1.0), kMinPower);
  EXPECT_EQ(Power(most, 1.0), kMaxPower);
  EXPECT_EQ(Power(denormal, most), kMinPower);
  EXPECT_EQ(Power(most, most), kMaxPower);
  EXPECT_NEAR(Power(denormal, 0.5) / 0x1p-537, 1, 1e-12);
}

TEST(Log2Test, IsExactForPowersOfTwo) {
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    ASSERT_EQ(Log2(std::ldexp(1.0, exponent)), exponent);
  }
}

// As a contraction would round once where two roundings are due.
TEST(ExactMathTest, ProductsAreRoundedBeforeTheyAreAdded) {
  const volatile double x = 1 + 0x1p-30, negative = -(1 + 0x1p-29);
  EXPECT_EQ(Add(Multiply(x, x), negative), 0.0);
}

TEST(OrderOfTest, KeepsTheOrderOfDoubles) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 10000; ++i) {
    const double a = RandomDouble(random, 1000) * (random() % 2 == 0 ? 1 : -1);
    const double b = RandomDouble(random, 1000) * (random() % 2 == 0 ? 1 : -1);
    ASSERT_EQ(a < b, OrderOf(a) < OrderOf(b));
  }
  EXPECT_EQ(OrderOf(0.0), OrderOf(-0.0));
  EXPECT_LT(OrderOf(-1.0), OrderOf(0.0));
}

// Children over many magnitudes and with zeros; targets at and around every cumulative sum.
TEST(StepAmongFourTest, EveryTargetFindsAPositiveChildAndStaysInside) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50000; ++round) {
    Four<double> four;
    for (double& child : four.child) {
      child = random() % 3 == 0 ? 0.0 : RandomDouble(random, round % 2 == 0 ? 2 : 500);
    }
    const double sum = four.Combined();
    if (sum == 0) continue;
    double end = 0;
    for (int i = 0; i <= 4; ++i) {
      for (const double target : {std::nextafter(end, 0.0), end, std::nextafter(end, HUGE_VAL)}) {
        if (!(target < sum)) continue;
        const Step<double> step = StepAmongFour(four, target);
        ASSERT_GT(step.value, 0);
        ASSERT_EQ(step.value, four.child[step.index]);
        ASSERT_GE(step.target, 0);
        ASSERT_LT(step.target, step.value);
      }
      if (i < 4) end += four.child[i];
    }
  }
}

}  // namespace
}  // namespace gear_reverb::device
