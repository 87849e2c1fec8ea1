#include "native/base/environment.h"

#include <cstdlib>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "native/base/log.h"

namespace gear_reverb::base {
namespace {

constexpr char kName[] = "GEAR_REVERB_TEST_SETTING";

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    SetLogSink([this](LogLevel, const std::string& text) { warnings_.push_back(text); });
  }
  ~EnvironmentTest() override {
    SetLogSink(nullptr);
    unsetenv(kName);
  }
  std::optional<int64_t> IntegerOf(const char* text) {
    setenv(kName, text, /*overwrite=*/1);
    return IntegerSetting(kName, 1);
  }
  std::optional<double> NumberOf(const char* text) {
    setenv(kName, text, /*overwrite=*/1);
    return NumberSetting(kName, 0);
  }

  std::vector<std::string> warnings_;
};

TEST_F(EnvironmentTest, NumbersAreTaken) {
  EXPECT_EQ(IntegerSetting(kName, 1), std::nullopt);
  EXPECT_EQ(IntegerOf("1"), 1);
  EXPECT_EQ(IntegerOf("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(NumberOf("0"), 0.0);
  EXPECT_EQ(NumberOf("2.5"), 2.5);
  EXPECT_EQ(NumberOf("inf"), std::numeric_limits<double>::infinity());
  EXPECT_THAT(warnings_, ::testing::IsEmpty());
}

TEST_F(EnvironmentTest, WhatIsNoneIsToldOnceAndIgnored) {
  for (const char* const text : {"", "0", "-1", "4k", "9223372036854775808", "1.5"}) {
    warnings_.clear();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(IntegerOf(text), std::nullopt) << text;
    EXPECT_THAT(warnings_, ::testing::ElementsAre(
                               absl::StrCat(kName, " is '", text,
                                            "' and must be a whole number >= 1; the default is "
                                            "used.")));
  }
  setenv(kName, "9", /*overwrite=*/1);
  EXPECT_EQ(IntegerSetting(kName, 1, 8), std::nullopt);
  EXPECT_EQ(warnings_.back(), absl::StrCat(kName,
                                           " is '9' and must be a whole number >= 1 and <= "
                                           "8; the default is used."));
  for (const char* const text : {"nan", "-0.1", "soon"}) {
    warnings_.clear();
    EXPECT_EQ(NumberOf(text), std::nullopt) << text;
    EXPECT_EQ(warnings_.size(), 1u) << text;
  }
}

}  // namespace
}  // namespace gear_reverb::base
