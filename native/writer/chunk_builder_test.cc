#include "native/writer/chunk_builder.h"

#include <gtest/gtest.h>

#include "native/writer/test_tensors.h"

namespace gear_reverb::writer {
namespace {

// A finished chunk of the steps 0, 1, … of one column.
storage::ChunkPtr Build(const std::vector<TensorCopy>& steps, int64_t max_steps) {
  ChunkBuilder builder(7, 8, max_steps, {steps[0].view()});
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_TRUE(builder.Reserve({steps[i].view()}).ok());
    builder.Append({steps[i].view()}, static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(builder.Read(0, i).value(), steps[i]);
  EXPECT_TRUE(builder.Finish().ok());
  EXPECT_TRUE(builder.Finish().ok());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(builder.Read(0, i).value(), steps[i]);
  return builder.chunk();
}

TensorCopy ColumnOf(const storage::Chunk& chunk) {
  const tensor::TensorView view = chunk.columns()[0].view();
  return {view.dtype, view.shape,
          std::string(reinterpret_cast<const char*>(view.data.data()), view.data.size())};
}

TEST(ChunkBuilderTest, AChunkStacksItsSteps) {
  const std::vector<TensorCopy> steps = {Ints({1, 2}, {2}), Ints({3, 4}, {2})};
  const auto chunk = Build(steps, 2);
  EXPECT_EQ(ColumnOf(*chunk), Stacked(steps));
  EXPECT_EQ(chunk->key(), 7);
  EXPECT_EQ(chunk->range().episode_id, 8);
}

TEST(ChunkBuilderTest, AChunkCutShortHasOnlyItsSteps) {
  const std::vector<TensorCopy> steps = {Int(1), Int(2), Int(3)};
  const auto chunk = Build(steps, 1000);
  EXPECT_EQ(ColumnOf(*chunk), Stacked(steps));
  EXPECT_EQ(chunk->bytes(), 12);
}

TEST(ChunkBuilderTest, StringsArePackedOverAllSteps) {
  const std::vector<TensorCopy> steps = {Text({"a", ""}, {2}),
                                         Text({std::string("\0x", 2), "long"}, {2})};
  EXPECT_EQ(ColumnOf(*Build(steps, 5)), Stacked(steps));
}

TEST(ChunkBuilderTest, StepsWithoutElementsAreFine) {
  EXPECT_EQ(Build({Ints({}, {0, 3}), Ints({}, {0, 3})}, 2)->bytes(), 0);
  EXPECT_EQ(Build({Text({}, {0}), Text({}, {0})}, 3)->steps(), 2);
}

TEST(ChunkBuilderTest, LargeChunksGrowAsTheyFill) {
  std::vector<TensorCopy> steps;
  for (int i = 0; i < 11; ++i) steps.push_back(Bytes(400'000, static_cast<uint8_t>(i)));
  EXPECT_EQ(ColumnOf(*Build(steps, 11)), Stacked(steps));
  EXPECT_EQ(ColumnOf(*Build(steps, 1'000'000)), Stacked(steps));
}

TEST(ChunkBuilderTest, AStepLargerThanAChunkChangesNothing) {
  // Well-formed; the view's bytes are never touched.
  const tensor::TensorView huge{tensor::DType::kUint8, {int64_t{1} << 32}, {}};
  ChunkBuilder builder(1, 1, 4, {huge});
  EXPECT_TRUE(absl::IsInvalidArgument(builder.Reserve({huge})));
  EXPECT_EQ(builder.steps(), 0);
  EXPECT_TRUE(builder.Finish().ok());
  EXPECT_EQ(builder.chunk(), nullptr);
}

}  // namespace
}  // namespace gear_reverb::writer
