#include "native/device/selection_conformance.h"

namespace gear_reverb::device::testing {

INSTANTIATE_TEST_SUITE_P(Cpu, SelectionTest, ::testing::ValuesIn(Cases(TwinBackend())), NameOf);
INSTANTIATE_TEST_SUITE_P(Cpu, WeightedSelectionTest,
                         ::testing::ValuesIn(WeightedCases(TwinBackend())), NameOf);

namespace {

TEST(SelectionOptionsTest, RefusesABadExponent) {
  for (const double exponent : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(Selection::Create(selectors::PrioritizedOptions{exponent}, MakeSelectTwin())
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gear_reverb::device::testing
