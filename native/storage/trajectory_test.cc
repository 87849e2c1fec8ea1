#include "native/storage/trajectory.h"

#include <cstring>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::storage {
namespace {

using tensor::DType;
using testing::HasSubstr;
using Column = TrajectoryBuilder::Column;

TrajectoryPtr Of(std::initializer_list<Column> columns) {
  TrajectoryBuilder builder;
  builder.columns.assign(columns.begin(), columns.end());
  return std::move(builder).Build();
}

std::string Text(absl::Span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

class TrajectoryTest : public testing::Test {
 protected:
  // A chunk of one column of random numbers.
  ChunkPtr Numbers(DType dtype, tensor::Shape shape) {
    std::string bytes(tensor::NumBytes(dtype, shape).value(), '\0');
    for (char& c : bytes) c = static_cast<char>(random_());
    return FromBytes(dtype, std::move(shape), bytes);
  }
  ChunkPtr Strings(tensor::Shape shape, const std::vector<std::string>& values) {
    return FromBytes(
        DType::kString, std::move(shape),
        tensor::PackStrings(std::vector<absl::string_view>(values.begin(), values.end())));
  }
  ChunkPtr FromBytes(DType dtype, tensor::Shape shape, const std::string& bytes) {
    const tensor::TensorView view{
        dtype, std::move(shape),
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size())};
    return CopyToChunk(*arena_, next_key_++, {}, {view}).value();
  }

  static std::string Gathered(const TrajectoryColumn& column) {
    // On the heap in exact size, so that the address sanitizer sees any byte outside.
    std::vector<std::byte> out(LayoutOf(column).bytes);
    Gather(column, out.data());
    return Text(out);
  }

  static void ExpectRefused(const Column& column, const std::string& message) {
    const absl::Status status = CheckTrajectory(*Of({column}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Column 0"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  std::mt19937_64 random_{1};
  uint64_t next_key_ = 100;
  std::shared_ptr<memory::Arena> arena_ = memory::Arena::Create({.shareable = false});
};

TEST_F(TrajectoryTest, GathersRandomSlicesOfNumbers) {
  for (int round = 0; round < 200; ++round) {
    const DType dtype =
        round % 3 == 0 ? DType::kUint8 : (round % 3 == 1 ? DType::kFloat32 : DType::kComplex128);
    tensor::Shape step_shape;
    for (size_t rank = random_() % 3; rank > 0; --rank) step_shape.push_back(random_() % 4);
    Column column;
    std::string expected;
    int64_t length = 0;
    for (size_t slices = 1 + random_() % 5; slices > 0; --slices) {
      const int32_t steps = 1 + random_() % 9;
      tensor::Shape shape{steps};
      shape.insert(shape.end(), step_shape.begin(), step_shape.end());
      ChunkSlice slice{Numbers(dtype, shape)};
      slice.offset = random_() % steps;
      slice.length = 1 + random_() % (steps - slice.offset);
      const std::string bytes = Text(slice.source().data.span());
      for (int32_t step = slice.offset; step < slice.offset + slice.length; ++step) {
        expected += bytes.substr(bytes.size() / steps * step, bytes.size() / steps);
      }
      length += slice.length;
      column.slices.push_back(slice);
    }
    column.squeeze = length == 1 && round % 2 == 0;
    ASSERT_TRUE(CheckTrajectory(*Of({column})).ok());
    const ColumnLayout layout = LayoutOf(column);
    if (!column.squeeze) step_shape.insert(step_shape.begin(), length);
    EXPECT_EQ(layout.dtype, dtype);
    EXPECT_EQ(layout.shape, step_shape);
    EXPECT_EQ(layout.bytes, expected.size());
    EXPECT_EQ(Gathered(column), expected);
  }
}

TEST_F(TrajectoryTest, GathersRandomSlicesOfStrings) {
  for (int round = 0; round < 200; ++round) {
    const int64_t per_step = random_() % 4;
    Column column;
    std::vector<std::string> expected;
    for (size_t slices = 1 + random_() % 5; slices > 0; --slices) {
      const int32_t steps = 1 + random_() % 9;
      std::vector<std::string> values(steps * per_step);
      for (std::string& value : values) value.assign(random_() % 5, 'a' + random_() % 26);
      ChunkSlice slice{Strings({steps, per_step}, values)};
      slice.offset = random_() % steps;
      slice.length = 1 + random_() % (steps - slice.offset);
      expected.insert(expected.end(), values.begin() + slice.offset * per_step,
                      values.begin() + (slice.offset + slice.length) * per_step);
      column.slices.push_back(slice);
    }
    ASSERT_TRUE(CheckTrajectory(*Of({column})).ok());
    const std::vector<absl::string_view> views(expected.begin(), expected.end());
    EXPECT_EQ(Gathered(column), tensor::PackStrings(views));
    EXPECT_EQ(*tensor::NumElements(LayoutOf(column).shape), expected.size());
  }
}

TEST_F(TrajectoryTest, ASqueezedColumnLosesItsFirstAxis) {
  Column column{{{Numbers(DType::kInt32, {4, 3}), 2, 1}}, true};
  EXPECT_TRUE(CheckTrajectory(*Of({column})).ok());
  EXPECT_EQ(LayoutOf(column).shape, (tensor::Shape{3}));
  column = {{{Strings({2}, {"ab", "c"}), 1, 1}}, true};
  EXPECT_EQ(LayoutOf(column).shape, tensor::Shape{});
  EXPECT_EQ(Gathered(column), tensor::PackStrings({"c"}));
}

TEST_F(TrajectoryTest, SlicesMayPickAColumnOfTheirChunk) {
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}};
  const ChunkPtr chunk = CopyToChunk(*arena_, 1, {},
                                     {tensor::TensorView{DType::kInt16, {1}, bytes},
                                      tensor::TensorView{DType::kUint8, {1, 2}, bytes}})
                             .value();
  const Column column{{{chunk, 0, 1, 1}}};
  EXPECT_TRUE(CheckTrajectory(*Of({column})).ok());
  EXPECT_EQ(LayoutOf(column).shape, (tensor::Shape{1, 2}));
  ExpectRefused({{{chunk, 0, 1, 2}}}, "refers to column 2 of chunk 1, which has 2");
  ExpectRefused({{{chunk, 0, 1, -1}}}, "refers to column -1");
}

TEST_F(TrajectoryTest, SlicesOutsideTheirChunkAreRefused) {
  const ChunkPtr chunk = Numbers(DType::kFloat32, {5});
  EXPECT_TRUE(CheckTrajectory(*Of({{{{chunk, 0, 5}}}})).ok());
  const std::vector<std::pair<int32_t, int32_t>> outside = {
      {0, 6},          {5, 1},
      {4, 2},          {-1, 2},
      {0, 0},          {0, -1},
      {3, INT32_MIN},  {INT32_MAX, 1},
      {1, INT32_MAX},  {INT32_MAX, INT32_MAX},
      {INT32_MIN, 10}, {INT32_MIN, INT32_MIN}};
  for (const auto& [offset, length] : outside) {
    ExpectRefused({{{chunk, 0, 1}, {chunk, offset, length}}}, "slice 1 has offset");
  }
  ExpectRefused({{{nullptr, 0, 1}}}, "no chunk");
}

TEST_F(TrajectoryTest, SlicesOfOneColumnMustAgree) {
  const ChunkPtr chunk = Numbers(DType::kFloat32, {5, 2});
  ExpectRefused({{{chunk, 0, 1}, {Numbers(DType::kInt32, {5, 2}), 0, 1}}}, "slice 1 has steps of");
  ExpectRefused({{{chunk, 0, 1}, {Numbers(DType::kFloat32, {5, 3}), 0, 1}}}, "float32[3]");
  ExpectRefused({{{chunk, 0, 1}, {Numbers(DType::kFloat32, {5}), 0, 1}}}, "float32[]");
  const ChunkPtr longer = Numbers(DType::kFloat32, {9, 2});
  EXPECT_TRUE(CheckTrajectory(*Of({{{{chunk, 0, 1}, {longer, 0, 9}}}})).ok());
}

TEST_F(TrajectoryTest, EmptyAndWronglySqueezedColumnsAreRefused) {
  EXPECT_EQ(CheckTrajectory(*Of({})).code(), absl::StatusCode::kInvalidArgument);
  ExpectRefused({}, "no slice");
  const ChunkPtr chunk = Numbers(DType::kFloat32, {5});
  ExpectRefused({{{chunk, 0, 2}}, true}, "squeezed but has 2 steps");
  const ChunkPtr endless = Numbers(DType::kInt32, {INT32_MAX, 0});
  EXPECT_TRUE(CheckTrajectory(*Of({{{{endless, 0, INT32_MAX}}, false}})).ok());
  ExpectRefused({{{endless, 0, INT32_MAX}, {endless, 0, 1}}, false}, "has 2147483648 steps");
  ExpectRefused({{{chunk, 0, 1}, {chunk, 0, 1}}, true}, "squeezed but has 2 steps");
}

TEST_F(TrajectoryTest, ChunksAreDistinctAndInOrderOfUse) {
  const ChunkPtr a = Numbers(DType::kInt8, {2}), b = Numbers(DType::kInt8, {2});
  const TrajectoryPtr trajectory = Of({{{{b, 0, 1}, {a, 0, 1}}}, {{{b, 1, 1}}}, {{{a, 0, 2}}}});
  EXPECT_EQ(trajectory->chunks(), (std::vector<ChunkPtr>{b, a}));
  EXPECT_EQ(trajectory->columns[0].length(), 2);
}

TEST_F(TrajectoryTest, TimestepsNeedEquallyLongUnsqueezedColumns) {
  const ChunkPtr chunk = Numbers(DType::kInt8, {9});
  const Column three{{{chunk, 0, 3}}}, pieces{{{chunk, 0, 1}, {chunk, 4, 2}}};
  const Column one{{{chunk, 0, 1}}}, squeezed{{{chunk, 0, 1}}, true};
  EXPECT_TRUE(HasTimesteps(*Of({three, pieces})));
  EXPECT_TRUE(HasTimesteps(*Of({one})));
  EXPECT_FALSE(HasTimesteps(*Of({three, one})));
  EXPECT_TRUE(HasTimesteps(*Of({one, squeezed})));
  EXPECT_TRUE(HasTimesteps(*Of({squeezed})));
  EXPECT_FALSE(HasTimesteps(*Of({})));
}

}  // namespace
}  // namespace gear_reverb::storage
