// Gathers of a GPU against random cases. Skipped, with the reason, without a GPU.
#include "native/cuda/gpu.h"

#include <gtest/gtest.h>

#include "native/cuda/cuda.h"

namespace gear_reverb::cuda {
namespace {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status status = Availability(); !status.ok()) GTEST_SKIP() << status.message();
  }
};

TEST_F(GpuTest, GathersWhatTheTwinDoes) {
  const auto differences = SelfTest(0, /*seed=*/1, /*rounds=*/2, /*large=*/false);
  ASSERT_TRUE(differences.ok()) << differences.status();
  EXPECT_EQ(*differences, std::vector<std::string>());
}

TEST_F(GpuTest, ThereIsNoSuchGpu) {
  EXPECT_TRUE(absl::IsInvalidArgument(OpenGpu(-1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenGpu(1000).status()));
}

}  // namespace
}  // namespace gear_reverb::cuda
