// What tests on an emulated warp have in common.
#pragma once

#include <gtest/gtest.h>

namespace gear_reverb::cuda {

class EmulatedWarpTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "not with ThreadSanitizer: an emulated warp has no threads, but many stacks";
#endif
  }
};

}  // namespace gear_reverb::cuda
