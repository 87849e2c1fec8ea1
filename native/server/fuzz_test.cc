// Mistaken messages of every method: nothing crashes, reads or writes outside of what it has, keeps
// memory, or fails without a reason. Meant for the sanitizers' builds; see also fuzz/.
//
// GEAR_REVERB_FUZZ_SEED and GEAR_REVERB_FUZZ_ROUNDS (calls per test) override the defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "native/base/log.h"
#include "native/server/fuzz_target.h"

namespace gear_reverb::server::fuzz {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// About a minute where the sanitizers look on, and a few seconds elsewhere.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kRounds = 60000;
#else
constexpr int64_t kRounds = 6000;
#endif

class FuzzTest : public testing::Test {
 protected:
  void SetUp() override {
    base::SetLogSink([](base::LogLevel, const std::string&) {});
    std::cout << "GEAR_REVERB_FUZZ_SEED=" << seed << " GEAR_REVERB_FUZZ_ROUNDS=" << rounds << "\n";
  }
  void TearDown() override { base::SetLogSink(nullptr); }

  const uint64_t seed = FromEnvironment("GEAR_REVERB_FUZZ_SEED", 20261121);
  const int64_t rounds = FromEnvironment("GEAR_REVERB_FUZZ_ROUNDS", kRounds);
  Random random{seed};
  const std::vector<Method> methods = AllMethods();
};

TEST_F(FuzzTest, TheCorpusIsWellFormed) {
  for (const Method& method : methods) {
    for (const auto& messages : method.calls) {
      Target target;
      if (method.path == std::string(rpc::method::kSampleStream)) {
        for (const auto& insert : methods[0].calls) {
          ASSERT_TRUE(target.Run(methods[0].path, insert).ok());
        }
      }
      const absl::Status status = target.Run(method.path, messages);
      EXPECT_TRUE(status.ok()) << method.path << ": " << status;
      for (const std::string& message : messages) {
        const auto fields = Field::Parse(message, method.schema);
        EXPECT_EQ(Field::Serialize(fields), message) << "A tree is not the message it was made of.";
      }
      target.SampleAll();
      target.CheckNothingIsLeft();
    }
  }
}

TEST_F(FuzzTest, MistakenCallsDoNoHarm) {
  Target target;
  std::map<absl::StatusCode, int64_t> codes;
  for (int64_t round = 0; round < rounds; ++round) {
    // Most of what can go wrong is in inserts.
    const Method& method = random() % 4 != 0 ? methods[0] : methods[random() % 4];
    const absl::Status status = target.Run(method.path, MutatedCall(method, random));
    ++codes[status.code()];
    if (status.ok() && round % 4 == 0) target.SampleAll();
    if (round % 1000 == 999) target.CheckNothingIsLeft();
  }
  target.CheckNothingIsLeft();
  for (const auto& [code, count] : codes) {
    std::cout << absl::StatusCodeToString(code) << ": " << count << "\n";
    EXPECT_THAT(code, testing::AnyOf(absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument,
                                     absl::StatusCode::kNotFound, absl::StatusCode::kInternal,
                                     absl::StatusCode::kFailedPrecondition,
                                     absl::StatusCode::kDeadlineExceeded));
  }
  // The mistakes are neither so gross that nothing gets through, nor so small that all does.
  EXPECT_GT(codes[absl::StatusCode::kOk], rounds / 20);
  EXPECT_GT(codes[absl::StatusCode::kInvalidArgument], rounds / 20);
}

TEST_F(FuzzTest, AnyBytesCanBeDecoded) {
  for (int64_t round = 0; round < rounds / 4; ++round) {
    const Method& method = methods[random() % 4];
    const auto& call = method.calls[random() % method.calls.size()];
    std::string bytes = Mutated(call[random() % call.size()], method.schema, random);
    if (random() % 2 == 0) bytes.erase(0, random() % 8);
    // On the heap in exact size, so that the address sanitizer sees any byte outside.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    DecodeAll({exact.data(), exact.size()});
  }
}

}  // namespace
}  // namespace gear_reverb::server::fuzz
