#include "native/rate_limiter/rate_limiter.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gear_reverb::rate_limiter {
namespace {

using ::testing::HasSubstr;

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

RateLimiter Make(double samples_per_insert, int64_t min_size, double min_diff, double max_diff,
                 const RateLimiterCounts& counts = {}) {
  RateLimiter limiter =
      RateLimiter::Create({samples_per_insert, min_size, min_diff, max_diff}).value();
  limiter.Restore(counts);
  return limiter;
}

RateLimiter MinSize(int64_t size) { return Make(1.0, size, -kHuge, kHuge); }
RateLimiter Queue(int64_t size) { return Make(1.0, 1, 0.0, static_cast<double>(size)); }

TEST(RateLimiterTest, MinSizeWaitsForItemsAndNeverStopsInserts) {
  RateLimiter limiter = MinSize(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(limiter.CanSample(1));
    EXPECT_TRUE(limiter.CanInsert(1000000));
    limiter.CountInsert(1);
  }
  EXPECT_TRUE(limiter.CanSample(10));
  limiter.CountSample(1000000);
  EXPECT_TRUE(limiter.CanSample(1));
  limiter.CountDelete(1);
  EXPECT_FALSE(limiter.CanSample(1));
}

TEST(RateLimiterTest, QueueTakesItsSizeAndGivesEveryItemOnce) {
  RateLimiter limiter = Queue(3);
  EXPECT_TRUE(limiter.CanInsert(3));
  EXPECT_FALSE(limiter.CanInsert(4));
  limiter.CountInsert(3);
  EXPECT_FALSE(limiter.CanInsert(1));
  EXPECT_TRUE(limiter.CanSample(3));
  EXPECT_FALSE(limiter.CanSample(4));
  EXPECT_EQ(limiter.SampleAllowance(100), 3);
  limiter.CountSample(1);
  limiter.CountDelete(1);
  EXPECT_TRUE(limiter.CanInsert(1));
  EXPECT_EQ(limiter.SampleAllowance(100), 2);
}

TEST(RateLimiterTest, InsertsUpToTheMinimumSizeAreFree) {
  // SampleToInsertRatio(2.0, 10, 4.0): differences between 16 and 24.
  RateLimiter limiter = Make(2.0, 10, 16.0, 24.0);
  EXPECT_TRUE(limiter.CanInsert(12));
  EXPECT_FALSE(limiter.CanInsert(13));
  limiter.CountInsert(10);
  EXPECT_TRUE(limiter.CanSample(4));
  EXPECT_FALSE(limiter.CanSample(5));
  EXPECT_TRUE(limiter.CanInsert(2));
  EXPECT_FALSE(limiter.CanInsert(3));
  // Deletions make inserts free again, though the difference is at its end.
  limiter.CountInsert(2);
  EXPECT_FALSE(limiter.CanInsert(1));
  limiter.CountDelete(3);
  EXPECT_TRUE(limiter.CanInsert(1));
  EXPECT_FALSE(limiter.CanInsert(2));
}

TEST(RateLimiterTest, ResetForgetsAndRestoreSetsTheCounts) {
  RateLimiter limiter = Queue(2);
  limiter.CountInsert(2);
  limiter.Reset();
  EXPECT_EQ(limiter.counts().inserts, 0);
  EXPECT_TRUE(limiter.CanInsert(2));
  limiter.Restore({.inserts = 7, .samples = 5, .deletes = 4});
  EXPECT_EQ(limiter.SampleAllowance(9), 2);
  EXPECT_EQ(limiter.counts().deletes, 4);
}

TEST(RateLimiterTest, InfiniteDifferencesMeanNoBound) {
  const RateLimiter open = Make(1.0, 1, -kInfinity, kInfinity, {.inserts = 1, .samples = 1000});
  EXPECT_TRUE(open.CanSample(std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(open.CanInsert(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(open.SampleAllowance(std::numeric_limits<int64_t>::max()),
            std::numeric_limits<int64_t>::max());
  const RateLimiter closed = Make(1.0, 1, kInfinity, kInfinity, {.inserts = 5});
  EXPECT_FALSE(closed.CanSample(1));
  EXPECT_EQ(closed.SampleAllowance(10), 0);
}

TEST(RateLimiterTest, RejectsBadOptionsAndNamesThem) {
  const auto error = [](double samples_per_insert, int64_t min_size, double low, double high) {
    const auto limiter = RateLimiter::Create({samples_per_insert, min_size, low, high});
    EXPECT_EQ(limiter.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(limiter.status().message());
  };
  EXPECT_THAT(error(-1, 1, 0, 1), HasSubstr("samples_per_insert (-1)"));
  EXPECT_THAT(error(kNaN, 1, 0, 1), HasSubstr("samples_per_insert"));
  EXPECT_THAT(error(kInfinity, 1, 0, 1), HasSubstr("samples_per_insert"));
  EXPECT_THAT(error(1, 0, 0, 1), HasSubstr("min_size_to_sample (0)"));
  EXPECT_THAT(error(1, -5, 0, 1), HasSubstr("min_size_to_sample (-5)"));
  EXPECT_THAT(error(1, 1, kNaN, 1), HasSubstr("min_diff"));
  EXPECT_THAT(error(1, 1, 0, kNaN), HasSubstr("max_diff"));
  EXPECT_THAT(error(1, 1, 2, 1), HasSubstr("min_diff (2) must not exceed max_diff (1)"));
}

TEST(RateLimiterTest, SaysWhichInequalityFailsAndByHowMuch) {
  const RateLimiter limiter = Make(2.0, 3, -1.0, 5.0, {.inserts = 4, .samples = 3, .deletes = 2});
  EXPECT_EQ(limiter.WhyNotSample(1),
            "Cannot sample 1: the table has 2 items (4 inserted - 2 deleted), which is 1 fewer "
            "than min_size_to_sample = 3.");
  EXPECT_EQ(limiter.WhyNotInsert(2),
            "Cannot insert 2: (4 + 2) inserts * 2 samples_per_insert - 3 samples = 9, which is "
            "above max_diff = 5 by 4, and the table already has 2 items of the "
            "min_size_to_sample = 3 up to which inserts are free.");
  EXPECT_EQ(limiter.WhyNotInsert(1), "");
  const RateLimiter full = Make(2.0, 3, -1.0, 5.0, {.inserts = 4, .samples = 3});
  EXPECT_EQ(full.WhyNotSample(6), "");
  EXPECT_EQ(full.WhyNotSample(8),
            "Cannot sample 8: 4 inserts * 2 samples_per_insert - 3 samples - 8 = -3, which is "
            "below min_diff = -1 by 2.");
}

// Random limiters against the two inequalities as the header writes them.
TEST(RateLimiterPropertyTest, AnswersFollowTheFormulas) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  const double ratios[] = {0, 0.1, 0.25, 1.0 / 3, 0.7, 1, 1.5, 4, 32, 1000.3};
  for (int i = 0; i < 200000; ++i) {
    const double ratio = ratios[below(std::size(ratios))];
    const double low = below(5) == 0 ? -kHuge : static_cast<double>(below(400) - 200) / 4;
    const double high = below(5) == 0 ? kHuge : low + static_cast<double>(below(200)) / 3;
    const int64_t min_size = 1 + below(20);
    const int64_t inserts = below(60), deletes = inserts == 0 ? 0 : below(inserts);
    const int64_t samples = below(100);
    const RateLimiter limiter = Make(ratio, min_size, low, high,
                                     {.inserts = inserts, .samples = samples, .deletes = deletes});
    const int64_t n = 1 + below(40), limit = below(40);
    const bool sample = inserts - deletes >= min_size && static_cast<double>(inserts) * ratio -
                                                                 static_cast<double>(samples) -
                                                                 static_cast<double>(n) >=
                                                             low;
    const bool insert =
        inserts + n - deletes <= min_size ||
        static_cast<double>(inserts + n) * ratio - static_cast<double>(samples) <= high;
    ASSERT_EQ(limiter.CanSample(n), sample);
    ASSERT_EQ(limiter.CanInsert(n), insert);
    ASSERT_EQ(limiter.WhyNotSample(n).empty(), sample);
    ASSERT_EQ(limiter.WhyNotInsert(n).empty(), insert);
    int64_t allowance = 0;
    while (allowance < limit && limiter.CanSample(allowance + 1)) ++allowance;
    ASSERT_EQ(limiter.SampleAllowance(limit), allowance);
    const int64_t room = limiter.InsertAllowance(limit);
    ASSERT_LE(room, std::max<int64_t>(limit, 0));
    ASSERT_EQ(room > 0, limit > 0 && limiter.CanInsert(1));
    if (room > 0) ASSERT_TRUE(limiter.CanInsert(room));
  }
}

// Where doubles are coarser than one sample, the allowance still ends exactly where CanSample does.
TEST(RateLimiterPropertyTest, AllowanceAgreesWithCanSampleUnderRounding) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const int64_t inserts = 1 + static_cast<int64_t>(random() >> (1 + random() % 62));
    const int64_t samples = static_cast<int64_t>(random() >> (1 + random() % 62));
    const double ratio = std::ldexp(static_cast<double>(random() >> 11), -53 + int(random() % 9));
    const double difference = static_cast<double>(inserts) * ratio - static_cast<double>(samples);
    const double low =
        difference - std::ldexp(static_cast<double>(random() >> 11), int(random() % 60) - 52);
    const RateLimiter limiter =
        Make(ratio, 1, low, kHuge, {.inserts = inserts, .samples = samples});
    const int64_t limit = static_cast<int64_t>(random() >> (1 + random() % 62));
    const int64_t allowance = limiter.SampleAllowance(limit);
    ASSERT_GE(allowance, 0);
    ASSERT_LE(allowance, limit);
    if (allowance > 0) {
      ASSERT_TRUE(limiter.CanSample(allowance));
    }
    if (allowance < limit) {
      ASSERT_FALSE(limiter.CanSample(allowance + 1));
    }
  }
}

}  // namespace
}  // namespace gear_reverb::rate_limiter
