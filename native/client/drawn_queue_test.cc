#include "native/client/drawn_queue.h"

#include <numeric>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gear_reverb::client {
namespace {

constexpr size_t kItemBytes = 8;

// Items `first`, `first` + 1, … of one column.
batch::DrawnBatch Group(uint64_t first, size_t n, tensor::DType dtype = tensor::DType::kFloat64) {
  static const double kValue = 0;
  batch::DrawnBatch group;
  group.keys.resize(n);
  std::iota(group.keys.begin(), group.keys.end(), first);
  group.probabilities.resize(n);
  group.priorities.resize(n);
  group.table_sizes.resize(n);
  group.times_sampled.resize(n);
  group.rate_limited.resize(n);
  batch::DrawnColumn& column = group.columns.emplace_back();
  column.dtype = dtype;
  for (size_t i = 0; i < n; ++i) {
    column.pieces.push_back({reinterpret_cast<const std::byte*>(&kValue), kItemBytes});
    column.piece_ends.push_back(static_cast<uint32_t>(i + 1));
    column.lengths.push_back(1);
  }
  return group;
}

using Keys = std::vector<uint64_t>;

TEST(DrawnQueueTest, ItemsComeInTheirOrderWhateverTheGroups) {
  DrawnQueue queue;
  queue.Push(Group(0, 3));
  queue.Push(Group(3, 1));
  queue.Push(Group(4, 4));
  EXPECT_EQ(queue.size(), 8);
  EXPECT_EQ(queue.Take(2, {})->keys, (Keys{0, 1}));
  EXPECT_EQ(queue.Take(3, {})->keys, (Keys{2, 3, 4}));
  queue.PutBack(Group(90, 1));
  EXPECT_EQ(queue.size(), 4);
  EXPECT_EQ(queue.Take(100, {})->keys, (Keys{90, 5, 6, 7}));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_TRUE(queue.groups().empty());
}

TEST(DrawnQueueTest, ABlockEndsWithItsBytes) {
  DrawnQueue queue;
  queue.Push(Group(0, 3));
  queue.Push(Group(3, 3));
  EXPECT_EQ(queue.Take(6, 4 * kItemBytes)->keys, (Keys{0, 1, 2, 3}));
  EXPECT_EQ(queue.Take(6, 0)->keys, (Keys{4}));  // One there is always.
  EXPECT_EQ(queue.Take(6, 100 * kItemBytes)->keys, (Keys{5}));
}

TEST(DrawnQueueTest, WhatIsNotAlikeEndsABlockAndIsNoBatch) {
  DrawnQueue queue;
  queue.Push(Group(0, 2));
  queue.Push(Group(2, 2, tensor::DType::kInt64));
  EXPECT_EQ(queue.Take(4, 100 * kItemBytes)->keys, (Keys{0, 1}));
  queue.PutBack(Group(0, 2));
  EXPECT_TRUE(absl::IsInvalidArgument(queue.Take(3, {}).status()));
  EXPECT_EQ(queue.size(), 1);
  EXPECT_EQ(queue.Clear(), 1);
  EXPECT_EQ(queue.Clear(), 0);
}

}  // namespace
}  // namespace gear_reverb::client
