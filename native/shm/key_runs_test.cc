#include "native/shm/key_runs.h"

#include <gtest/gtest.h>

#include <string>

#include "native/base/philox.h"

namespace gear_reverb::shm {
namespace {

TEST(KeyRunsTest, KeysComeBackInTheirOrder) {
  base::Philox random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> keys;
    KeyRuns runs;
    EXPECT_TRUE(runs.empty());
    while (keys.size() < 100) {
      uint64_t drawn[2];
      random.Fill(absl::MakeSpan(drawn));
      // Some runs meet others, and some go past the largest key.
      const uint64_t first = drawn[0] % 2 == 0 ? drawn[0] % 8 : UINT64_MAX - drawn[0] % 8;
      for (uint64_t i = 0; i <= drawn[1] % 20; ++i) keys.push_back(first + i);
    }
    for (const uint64_t key : keys) runs.Add(key);
    const auto decoded = DecodeKeyRuns(runs.body(), keys.size());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, keys);
    EXPECT_FALSE(DecodeKeyRuns(runs.body(), keys.size() - 1).ok());
  }
}

TEST(KeyRunsTest, ThoseOfABatchAreOneRun) {
  KeyRuns runs;
  for (uint64_t key = 7; key < 1007; ++key) runs.Add(key);
  EXPECT_EQ(runs.body().size(), sizeof(KeyRun));
}

TEST(KeyRunsTest, NothingElseIsTaken) {
  const auto body = [](uint64_t first, uint64_t count) {
    const KeyRun run{first, count};
    return std::string(reinterpret_cast<const char*>(&run), sizeof(run));
  };
  EXPECT_TRUE(DecodeKeyRuns("", 0)->empty());
  for (const std::string& bad : {body(1, 0), body(1, 1).substr(1), body(1, 1) + "x",
                                 body(1, UINT64_MAX), body(1, 2) + body(1, UINT64_MAX - 1)}) {
    EXPECT_EQ(DecodeKeyRuns(bad, 1000).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gear_reverb::shm
