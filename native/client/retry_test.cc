#include "native/client/retry.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace gear_reverb::client {
namespace {

TEST(RetryTest, AStreamThatLastedIsASuccess) {
  ASSERT_EQ(setenv("GEAR_REVERB_CONNECT_TIMEOUT", "0.2", 1), 0);
  const absl::Status unavailable = absl::UnavailableError("gone");
  const auto recovers = [&](Retry& retry) {
    return retry.Recover(unavailable, absl::InfiniteFuture()).ok();
  };
  absl::Time now = absl::UnixEpoch();
  const auto pass = [&](absl::Duration time) { now += time; };
  Retry retry([&] { return now; }, pass);
  EXPECT_TRUE(recovers(retry));
  pass(absl::Milliseconds(200));
  EXPECT_FALSE(recovers(retry));
  retry.Opened();
  EXPECT_FALSE(recovers(retry)) << "It ended at once.";
  retry.Opened();
  pass(absl::Milliseconds(1100));
  EXPECT_TRUE(recovers(retry));
  pass(absl::Milliseconds(200));
  EXPECT_FALSE(recovers(retry));
  retry.Succeeded();
  EXPECT_TRUE(recovers(retry));
  EXPECT_EQ(retry.Recover(absl::NotFoundError("table"), absl::InfiniteFuture()).code(),
            absl::StatusCode::kNotFound);
  ASSERT_EQ(unsetenv("GEAR_REVERB_CONNECT_TIMEOUT"), 0);
}

}  // namespace
}  // namespace gear_reverb::client
