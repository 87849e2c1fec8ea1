#include "native/base/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gear_reverb::base {
namespace {

TEST(FiniteTest, OneAmongManyCounts) {
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_TRUE(AreFiniteNotNegative({}));
  for (const double x : std::vector<double>{0, -0.0, 1e-310, 1, kMax, -1e-310, -1, -kMax, INFINITY,
                                            -INFINITY, NAN, -NAN}) {
    EXPECT_EQ(IsFiniteNotNegative(x), std::isfinite(x) && !(x < 0)) << x;
    for (size_t at = 0; at < 19; ++at) {
      std::vector<double> all(19, 1.5);
      all[at] = x;
      EXPECT_EQ(AreFiniteNotNegative(all), IsFiniteNotNegative(x)) << x << " at " << at;
    }
  }
}

}  // namespace
}  // namespace gear_reverb::base
