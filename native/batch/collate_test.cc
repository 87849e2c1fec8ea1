#include "native/batch/collate.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/batch/batch_test_util.h"

namespace gear_reverb::batch {
namespace {

using tensor::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kNoLimit = size_t{1} << 40;

DrawnBatch Drawn(std::vector<table::SampledItem> items) {
  auto groups = Flatten(std::move(items));
  EXPECT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(groups->size(), 1u);
  return std::move((*groups)[0]);
}

// The int32 values of a column, after collating into memory of other content.
std::vector<int32_t> Collated(const DrawnBatch& batch, const BatchLayout& layout, size_t column) {
  std::vector<std::byte> buffer(layout.buffer_bytes, std::byte{0xEE});
  Collate(batch, layout, buffer.data());
  std::vector<int32_t> values(layout.columns[column].bytes / sizeof(int32_t));
  std::memcpy(values.data(), buffer.data() + layout.columns[column].offset,
              layout.columns[column].bytes);
  return values;
}

TEST(FlattenTest, InfoAndPiecesAreInTheOrderOfDrawing) {
  const auto chunk = Int32Chunk({1, 2, 3, 4, 5});
  std::vector<table::SampledItem> items;
  items.push_back(Sampled(7, {{{{chunk, 1, 2, 0}, {chunk, 4, 1, 0}}, false}}));
  items.push_back(Sampled(9, {{{{chunk, 0, 3, 0}}, false}}));
  items[1].rate_limited = true;
  const DrawnBatch batch = Drawn(std::move(items));
  EXPECT_THAT(batch.keys, ElementsAre(7, 9));
  EXPECT_THAT(batch.priorities, ElementsAre(7, 9));
  EXPECT_THAT(batch.probabilities, ElementsAre(0.5, 0.5));
  EXPECT_THAT(batch.table_sizes, ElementsAre(2, 2));
  EXPECT_THAT(batch.times_sampled, ElementsAre(3, 3));
  EXPECT_THAT(batch.rate_limited, ElementsAre(0, 1));
  ASSERT_EQ(batch.columns.size(), 1u);
  EXPECT_THAT(batch.columns[0].lengths, ElementsAre(3, 3));
  EXPECT_THAT(batch.columns[0].piece_ends, ElementsAre(2, 3));
  EXPECT_EQ(batch.columns[0].step_shape, Shape({1}));
}

TEST(FlattenTest, TheLeaseKeepsTheBytes) {
  DrawnBatch batch = Drawn({Sampled(1, {Whole({Int32Chunk({5, 6})})})});
  int32_t values[2];
  std::memcpy(values, batch.columns[0].pieces[0].data, sizeof(values));
  EXPECT_THAT(values, ElementsAre(5, 6));
}

TEST(FlattenTest, TextHasAPiecePerElement) {
  const DrawnBatch batch = Drawn({Sampled(1, {Whole({TextChunk({"a", "", "long"})})}),
                                  Sampled(2, {Whole({TextChunk({"z"})})})});
  EXPECT_THAT(batch.columns[0].piece_ends, ElementsAre(3, 4));
  EXPECT_EQ(batch.columns[0].pieces[2].bytes, 4u);
}

TEST(FlattenTest, NoRoomIsMadeForTextThatMayNotCome) {
  std::vector<table::SampledItem> items;
  items.push_back(Sampled(1, {Whole({TextChunk(std::vector<absl::string_view>(1000))})}));
  for (uint64_t key = 2; key < 100; ++key)
    items.push_back(Sampled(key, {Whole({TextChunk({""})})}));
  const DrawnBatch batch = Drawn(std::move(items));
  const auto& pieces = batch.columns[0].pieces;
  EXPECT_LT(pieces.capacity(), 3 * pieces.size());
}

TEST(CollateTest, EqualLengthsStack) {
  const DrawnBatch batch = Drawn({Sampled(1, {Whole({Int32Chunk({1, 2}, 1)})}),
                                  Sampled(2, {Whole({Int32Chunk({3}), Int32Chunk({4})})})});
  const auto layout = Plan(batch, Ragged::kError, kNoLimit);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->columns[0].shape, Shape({2, 2, 1}));
  EXPECT_THAT(Collated(batch, *layout, 0), ElementsAre(1, 2, 3, 4));
}

TEST(CollateTest, SqueezedColumnsHaveNoStepAxisWhateverThePolicy) {
  for (const Ragged ragged : {Ragged::kError, Ragged::kPad, Ragged::kPack}) {
    const DrawnBatch batch = Drawn({Sampled(1, {Whole({Int32Chunk({1, 2}, 2)}, true)}),
                                    Sampled(2, {Whole({Int32Chunk({3, 4}, 2)}, true)})});
    const auto layout = Plan(batch, ragged, kNoLimit);
    ASSERT_TRUE(layout.ok());
    EXPECT_EQ(layout->columns[0].shape, Shape({2, 2}));
    EXPECT_THAT(Collated(batch, *layout, 0), ElementsAre(1, 2, 3, 4));
  }
}

TEST(CollateTest, RaggedItemsAreRefusedPaddedOrPacked) {
  const auto batch = [] {
    return Drawn({Sampled(5, {Whole({Int32Chunk({1})})}),
                  Sampled(6, {Whole({Int32Chunk({2, 3, 4})})}),
                  Sampled(7, {Whole({Int32Chunk({5, 6})})})});
  }();
  const auto refused = Plan(batch, Ragged::kError, kNoLimit);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("Column 0 has 1 steps in item 5 but 3 in item 6"));
  const auto padded = Plan(batch, Ragged::kPad, kNoLimit);
  EXPECT_EQ(padded->columns[0].shape, Shape({3, 3, 1}));
  EXPECT_THAT(Collated(batch, *padded, 0), ElementsAre(1, 0, 0, 2, 3, 4, 5, 6, 0));
  const auto packed = Plan(batch, Ragged::kPack, kNoLimit);
  EXPECT_EQ(packed->columns[0].shape, Shape({6, 1}));
  EXPECT_THAT(Collated(batch, *packed, 0), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(CollateTest, PaddingGoesAsFarAsAskedFor) {
  const DrawnBatch batch =
      Drawn({Sampled(5, {Whole({Int32Chunk({1})})}), Sampled(6, {Whole({Int32Chunk({2, 3, 4})})})});
  const auto padded = Plan(batch, Ragged::kPad, kNoLimit, 4);
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_EQ(padded->columns[0].shape, Shape({2, 4, 1}));
  EXPECT_THAT(Collated(batch, *padded, 0), ElementsAre(1, 0, 0, 0, 2, 3, 4, 0));
  EXPECT_TRUE(Plan(batch, Ragged::kPad, kNoLimit, 3).ok());
  const auto refused = Plan(batch, Ragged::kPad, kNoLimit, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("Column 0 has 3 steps in item 6, which is more than pad_to (2)"));
}

TEST(CollateTest, ColumnsAreAligned) {
  const auto column = Whole({Int32Chunk({1})});
  const DrawnBatch batch = Drawn({Sampled(1, {column, column, column})});
  const auto layout = Plan(batch, Ragged::kError, kNoLimit);
  EXPECT_EQ(layout->columns[1].offset, BatchLayout::kColumnAlignment);
  EXPECT_EQ(layout->columns[2].offset, 2 * BatchLayout::kColumnAlignment);
  EXPECT_EQ(layout->buffer_bytes, 3 * BatchLayout::kColumnAlignment);
}

TEST(CollateTest, TheLimitCountsPaddingMasksAndText) {
  const DrawnBatch numbers = Drawn({Sampled(1, {Whole({Int32Chunk({1})})}),
                                    Sampled(2, {Whole({Int32Chunk(std::vector<int32_t>(10))})})});
  EXPECT_TRUE(Plan(numbers, Ragged::kPack, 44).ok());
  EXPECT_FALSE(Plan(numbers, Ragged::kPack, 43).ok());
  EXPECT_TRUE(Plan(numbers, Ragged::kPad, 100).ok());
  const auto refused = Plan(numbers, Ragged::kPad, 99);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("max_bytes (99)"));
  const DrawnBatch text = Drawn({Sampled(1, {Whole({TextChunk({"0123456789"})})})});
  EXPECT_TRUE(Plan(text, Ragged::kError, 18).ok());
  EXPECT_FALSE(Plan(text, Ragged::kError, 17).ok());
}

TEST(CollateTest, WeightsAreThoseOfTheDefinition) {
  const auto column = Whole({Int32Chunk({1})});
  const DrawnBatch batch = Drawn({Sampled(1, {column}, 0.1, 100), Sampled(2, {column}, 0.02, 100),
                                  Sampled(3, {column}, 1e-9, 100)});
  std::vector<float> weights(3);
  ASSERT_TRUE(ImportanceWeights(batch, 0.6, absl::MakeSpan(weights)).ok());
  EXPECT_NEAR(weights[0], std::pow(1e-8, 0.6), 1e-9);
  EXPECT_FLOAT_EQ(weights[1], std::pow(5e-8, 0.6));
  EXPECT_FLOAT_EQ(weights[2], 1);
  ASSERT_TRUE(ImportanceWeights(batch, 0, absl::MakeSpan(weights)).ok());
  EXPECT_THAT(weights, ElementsAre(1, 1, 1));
  const DrawnBatch never = Drawn({Sampled(4, {column}, 0)});
  EXPECT_THAT(std::string(ImportanceWeights(never, 1, absl::MakeSpan(weights)).message()),
              HasSubstr("Item 4"));
}

TEST(CollateTest, LengthsAgreeOnlyIfAllUnsqueezedColumnsDo) {
  const auto one = Whole({Int32Chunk({1})}), two = Whole({Int32Chunk({1, 2})});
  const auto squeezed = Whole({Int32Chunk({1})}, true);
  EXPECT_TRUE(LengthsAgree(Drawn({Sampled(1, {two, squeezed, two})})));
  EXPECT_FALSE(LengthsAgree(Drawn({Sampled(1, {one, two})})));
}

}  // namespace
}  // namespace gear_reverb::batch
