#include "native/batch/join.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/batch/batch_test_util.h"

namespace gear_reverb::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<DrawnBatch> Groups(std::vector<table::SampledItem> items) {
  auto groups = Flatten(std::move(items));
  EXPECT_TRUE(groups.ok()) << groups.status();
  return *std::move(groups);
}

// Item i has the steps i * 10, i * 10 + 1, and so on; each is a piece of its own.
table::SampledItem Counting(uint64_t key, int32_t length) {
  std::vector<storage::ChunkPtr> chunks;
  for (int32_t i = 0; i < length; ++i) {
    chunks.push_back(Int32Chunk({static_cast<int32_t>(key) * 10 + i}));
  }
  return Sampled(key, {Whole(chunks)});
}

std::vector<int32_t> ValuesOf(const DrawnBatch& batch) {
  std::vector<int32_t> values;
  for (const Piece& piece : batch.columns[0].pieces) {
    values.push_back(0);
    EXPECT_EQ(piece.bytes, sizeof(int32_t));
    std::memcpy(&values.back(), piece.data, sizeof(int32_t));
  }
  return values;
}

TEST(FlattenTest, NeighboursThatAreAlikeMakeAGroup) {
  const auto narrow = [](uint64_t key) { return Sampled(key, {Whole({Int32Chunk({1})})}); };
  const auto wide = [](uint64_t key) { return Sampled(key, {Whole({Int32Chunk({1, 2}, 2)})}); };
  std::vector<table::SampledItem> items;
  for (uint64_t key = 0; key < 40; ++key) items.push_back(narrow(key));
  items.push_back(wide(40));
  items.push_back(wide(41));
  items.push_back(narrow(42));
  const auto groups = Groups(std::move(items));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].size(), 40u);
  EXPECT_THAT(groups[1].keys, ElementsAre(40, 41));
  EXPECT_THAT(groups[1].columns[0].lengths, ElementsAre(1, 1));
  EXPECT_THAT(groups[2].keys, ElementsAre(42));
  EXPECT_EQ(groups[2].lease, groups[0].lease);
}

TEST(FlattenTest, AnItemWithoutDataIsRefused) {
  const auto groups = Flatten({Counting(1, 1), table::SampledItem{}});
  EXPECT_TRUE(absl::IsInvalidArgument(groups.status()));
  EXPECT_THAT(std::string(groups.status().message()), HasSubstr("Item 0 has no data"));
}

TEST(JoinTest, ItemsStayInOrderAndKeepTheirBytes) {
  std::vector<DrawnBatch> parts;
  for (uint64_t key : {1, 2, 3}) {
    parts.push_back(std::move(Groups({Counting(key, static_cast<int32_t>(key))})[0]));
  }
  const auto joined = Join(std::move(parts));
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_THAT(joined->keys, ElementsAre(1, 2, 3));
  EXPECT_THAT(joined->columns[0].lengths, ElementsAre(1, 2, 3));
  EXPECT_THAT(joined->columns[0].piece_ends, ElementsAre(1, 3, 6));
  EXPECT_THAT(ValuesOf(*joined), ElementsAre(10, 20, 21, 30, 31, 32));
}

TEST(JoinTest, WhatIsCutAndJoinedIsTheSame) {
  for (size_t n = 0; n <= 3; ++n) {
    DrawnBatch batch = std::move(Groups({Counting(1, 2), Counting(2, 1), Counting(3, 2)})[0]);
    std::vector<DrawnBatch> parts(2);
    parts[1] = SplitOff(&batch, n);
    parts[0] = std::move(batch);
    ASSERT_EQ(parts[0].size(), n);
    ASSERT_EQ(parts[1].size(), 3 - n);
    if (parts[0].size() == 0) parts.erase(parts.begin());
    if (parts.back().size() == 0) parts.pop_back();
    const auto joined = Join(std::move(parts));
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_THAT(joined->keys, ElementsAre(1, 2, 3));
    EXPECT_THAT(joined->columns[0].piece_ends, ElementsAre(2, 3, 5));
    EXPECT_THAT(ValuesOf(*joined), ElementsAre(10, 11, 20, 30, 31));
  }
}

TEST(JoinTest, ItemsThatDoNotMatchAreRefused) {
  const auto column = Whole({Int32Chunk({1})});
  const auto refused = [&](table::SampledItem other) {
    auto groups = Groups({Sampled(1, {column}), std::move(other)});
    EXPECT_EQ(groups.size(), 2u);
    return std::string(Join(std::move(groups)).status().message());
  };
  EXPECT_THAT(refused(Sampled(2, {column, column})),
              HasSubstr("Item 2 has 2 columns, but item 1 has 1"));
  EXPECT_THAT(
      refused(Sampled(2, {Whole({TextChunk({"x"})})})),
      HasSubstr("Column 0 of item 2 has steps of string[], but that of item 1 of int32[1]"));
  EXPECT_THAT(refused(Sampled(2, {Whole({Int32Chunk({1, 2}, 2)})})), HasSubstr("int32[2]"));
  EXPECT_THAT(refused(Sampled(2, {Whole({Int32Chunk({1})}, true)})),
              HasSubstr("Column 0 of item 2 is squeezed, but that of item 1 is not squeezed"));
}

}  // namespace
}  // namespace gear_reverb::batch
