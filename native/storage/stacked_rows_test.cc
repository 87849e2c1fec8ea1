#include "native/storage/stacked_rows.h"

#include <deque>
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::storage {
namespace {

using tensor::DType;
using tensor::TensorView;
using testing::HasSubstr;

class StackedRowsTest : public testing::Test {
 protected:
  // int32 numbers from 0 on; the bytes live as long as the test.
  TensorView Numbers(tensor::Shape shape) {
    auto& values = numbers_.emplace_back(tensor::NumElements(shape).value());
    std::iota(values.begin(), values.end(), 0);
    return {DType::kInt32,
            shape,
            {reinterpret_cast<const std::byte*>(values.data()), values.size() * 4}};
  }
  TensorView Strings(const std::vector<std::string>& values) {
    const std::string& packed = packed_.emplace_back(
        tensor::PackStrings(std::vector<absl::string_view>(values.begin(), values.end())));
    return {DType::kString,
            {static_cast<int64_t>(values.size())},
            {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}};
  }
  static std::string Gathered(const TrajectoryColumn& column) {
    std::string out(LayoutOf(column).bytes, '\0');
    Gather(column, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  static std::string ErrorOf(std::vector<TensorView> columns) {
    return std::string(StackedRows::Create(std::move(columns)).status().message());
  }
  // Copies all rows; every one must have the bytes of its place in `column`.
  void ExpectRows(const StackedRows& rows, size_t column, const tensor::Shape& row_shape) {
    const TensorView& from = rows.columns()[column];
    const size_t row_bytes = rows.size() == 0 ? 0 : from.data.size() / rows.size();
    int64_t next = 0;
    for (int64_t begin = 0; begin < rows.size();) {
      const int64_t end = rows.ChunkEnd(begin);
      const ChunkPtr chunk = rows.Copy(*arena_, 1, 2, begin, end).value();
      for (int64_t i = 0; begin < end; ++begin, ++next, ++i) {
        const TrajectoryPtr row = rows.Row(chunk, i);
        ASSERT_TRUE(CheckTrajectory(*row).ok());
        EXPECT_EQ(LayoutOf(row->columns[column]).shape, row_shape);
        ASSERT_EQ(Gathered(row->columns[column]),
                  std::string(reinterpret_cast<const char*>(from.data.data()) + next * row_bytes,
                              row_bytes));
      }
    }
    EXPECT_EQ(next, rows.size());
  }

  std::deque<std::vector<int32_t>> numbers_;
  std::deque<std::string> packed_;
  std::shared_ptr<memory::Arena> arena_ = memory::Arena::Create({.shareable = false});
};

TEST_F(StackedRowsTest, ACommonSecondAxisIsThatOfSteps) {
  const auto rows = StackedRows::Create({Numbers({3000, 2, 5}), Numbers({3000, 2})}).value();
  ExpectRows(rows, 0, {2, 5});
  ExpectRows(rows, 1, {2});
  const ChunkPtr chunk = rows.Copy(*arena_, 7, 9, 0, 10).value();
  EXPECT_EQ(chunk->steps(), 20);
  EXPECT_EQ(chunk->key(), 7);
  EXPECT_EQ(chunk->range().episode_id, 9);
  EXPECT_TRUE(HasTimesteps(*rows.Row(chunk, 3)));
}

TEST_F(StackedRowsTest, RowsOfTheFirstAreThoseOneByOne) {
  const auto rows = StackedRows::Create({Numbers({20, 2, 5}), Numbers({20, 2})}).value();
  ChunkPtr chunk = rows.Copy(*arena_, 7, 9, 0, 20).value();
  std::vector<TrajectoryPtr> all = {rows.Row(chunk, 0)};
  EXPECT_EQ(TrajectoryBuilder::RowOf(all[0], 0), all[0]);
  EXPECT_EQ(TrajectoryBuilder::RowOf(nullptr, 0), nullptr);
  for (uint32_t row = 1; row < 20; ++row) all.push_back(TrajectoryBuilder::RowOf(all[0], row));
  for (int64_t row = 0; row < 20; ++row) {
    ASSERT_TRUE(CheckTrajectory(*all[row]).ok());
    const TrajectoryPtr single = rows.Row(chunk, row);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(Gathered(all[row]->columns[i]), Gathered(single->columns[i]));
    }
  }
  // All but one go at once, and then that one.
  TrajectoryPtr kept = all[3];
  all.insert(all.end(), 5, all[3]);
  all.insert(all.begin() + 7, nullptr);
  chunk = nullptr;
  Trajectory::ReleaseAll(absl::MakeSpan(all));
  EXPECT_EQ(all[0], nullptr);
  EXPECT_EQ(arena_->stats().live_blocks, 2u);
  Trajectory::ReleaseAll({&kept, 1});
  EXPECT_EQ(arena_->stats().live_blocks, 0u);
}

TEST_F(StackedRowsTest, OtherwiseRowsAreSingleSteps) {
  const auto rows = StackedRows::Create({Numbers({40, 2, 5}), Numbers({40})}).value();
  ExpectRows(rows, 0, {2, 5});
  ExpectRows(rows, 1, {});
  EXPECT_TRUE(rows.Row(rows.Copy(*arena_, 7, 9, 0, 1).value(), 0)->columns[0].squeeze);
  ExpectRows(StackedRows::Create({Numbers({40, 0, 5})}).value(), 0, {0, 5});
}

TEST_F(StackedRowsTest, ChunksAreBoundedInBytesAndRows) {
  EXPECT_EQ(StackedRows::Create({Numbers({5000, 256})}).value().ChunkEnd(1), 65);
  EXPECT_EQ(StackedRows::Create({Numbers({5000})}).value().ChunkEnd(1), 1025);
  EXPECT_EQ(StackedRows::Create({Numbers({5, 20000})}).value().ChunkEnd(1), 2);
  EXPECT_EQ(StackedRows::Create({Numbers({5})}).value().ChunkEnd(2), 5);
  EXPECT_EQ(StackedRows::Create({Numbers({0, 3})}).value().size(), 0);
}

TEST_F(StackedRowsTest, StringsAreCutToo) {
  std::vector<std::string> values;
  for (int i = 0; i < 200; ++i) values.emplace_back(i * 10, 'a' + i % 26);
  const auto rows = StackedRows::Create({Strings(values), Numbers({200})}).value();
  int64_t chunks = 0;
  for (int64_t begin = 0; begin < 200; ++chunks) {
    const int64_t end = rows.ChunkEnd(begin);
    const ChunkPtr chunk = rows.Copy(*arena_, 1, 1, begin, end).value();
    EXPECT_LE(chunk->bytes(), StackedRows::kChunkBytes + 2 * 8);
    for (int64_t row = begin; row < end; ++row) {
      EXPECT_EQ(Gathered(rows.Row(chunk, row - begin)->columns[0]),
                tensor::PackStrings({absl::string_view(values[row])}));
    }
    begin = end;
  }
  EXPECT_GE(chunks, 3);
}

TEST_F(StackedRowsTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("no column"));
  EXPECT_THAT(ErrorOf({Numbers({2}), Numbers({})}), HasSubstr("Column 1 has no axis"));
  EXPECT_THAT(ErrorOf({Numbers({2}), Numbers({3})}),
              HasSubstr("Column 1 has 3 items but column 0"));
  TensorView cut = Numbers({4});
  cut.data.remove_suffix(1);
  EXPECT_THAT(ErrorOf({cut}), HasSubstr("Column 0 needs 16 bytes but has 15"));
}

}  // namespace
}  // namespace gear_reverb::storage
