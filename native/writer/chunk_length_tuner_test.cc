#include "native/writer/chunk_length_tuner.h"

#include <gtest/gtest.h>

#include <limits>

namespace gear_reverb::writer {
namespace {

// The length after many items of `item_steps` steps, one every `stride` steps of `bytes` bytes.
int64_t Tuned(int64_t max_length, int64_t item_steps, int64_t stride, int64_t bytes,
              double throughput_weight = 1.0) {
  ChunkLengthTuner tuner(max_length, throughput_weight);
  for (int item = 0; item < 200; ++item) {
    for (int64_t step = 0; step < stride; ++step) tuner.OnStep(bytes);
    tuner.OnItem(item_steps);
    EXPECT_GE(tuner.length(), 1);
    EXPECT_LE(tuner.length(), max_length);
  }
  return tuner.length();
}

TEST(ChunkLengthTunerTest, TheFirstChunksHaveOneStep) {
  ChunkLengthTuner tuner(100, 1.0);
  EXPECT_EQ(tuner.length(), 1);
  for (int64_t i = 0; i < ChunkLengthTuner::kItemsPerChange - 1; ++i) {
    tuner.OnStep(4);
    tuner.OnItem(50);
    EXPECT_EQ(tuner.length(), 1);
  }
}

TEST(ChunkLengthTunerTest, TheLengthIsTheModelsOptimum) {
  // sqrt(1024 * (1 * 1 + 20 - 1) / 4) = 71.6.
  EXPECT_EQ(Tuned(1000, 20, 1, 4), 72);
  // sqrt(1024 * (10 + 10 - 1) / 76) = 16.
  EXPECT_EQ(Tuned(1000, 10, 10, 76), 16);
}

TEST(ChunkLengthTunerTest, HeavyStepsAreChunkedSingly) { EXPECT_EQ(Tuned(1000, 5, 1, 1 << 20), 1); }

TEST(ChunkLengthTunerTest, TheLengthStaysWithinTheCellsKeptAlive) {
  EXPECT_EQ(Tuned(7, 20, 1, 4), 7);
  EXPECT_EQ(Tuned(1, 20, 1, 4), 1);
}

TEST(ChunkLengthTunerTest, MoreWeightOnWritingMakesLongerChunks) {
  EXPECT_GT(Tuned(1000, 2, 10, 64, 10.0), Tuned(1000, 2, 10, 64, 1.0));
}

TEST(ChunkLengthTunerTest, ExtremeInputStaysInBounds) {
  EXPECT_EQ(Tuned(1 << 30, 1, 1, 0, 0.0), 1);
  EXPECT_EQ(Tuned(5, std::numeric_limits<int64_t>::max(), 1, 0, std::numeric_limits<double>::max()),
            5);
}

TEST(ChunkLengthTunerTest, TheLengthFollowsAChangeOfHabits) {
  ChunkLengthTuner tuner(1000, 1.0);
  const auto run = [&](int64_t bytes) {
    for (int i = 0; i < 200; ++i) {
      tuner.OnStep(bytes);
      tuner.OnItem(10);
    }
    return tuner.length();
  };
  const int64_t light = run(4);
  EXPECT_GT(light, 10);
  EXPECT_EQ(run(1 << 20), 1);
  EXPECT_EQ(run(4), light);
}

}  // namespace
}  // namespace gear_reverb::writer
