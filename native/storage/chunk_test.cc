#include "native/storage/chunk.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::storage {
namespace {

using tensor::DType;
using testing::HasSubstr;

ChunkColumn ColumnOf(memory::Arena& arena, DType dtype, tensor::Shape shape, size_t bytes) {
  return {dtype, std::move(shape), arena.Allocate(bytes).value()};
}

ChunkColumn StringColumn(memory::Arena& arena, tensor::Shape shape,
                         const std::vector<absl::string_view>& values) {
  const std::string packed = tensor::PackStrings(values);
  ChunkColumn column = ColumnOf(arena, DType::kString, std::move(shape), packed.size());
  std::memcpy(column.data.data(), packed.data(), packed.size());
  return column;
}

class ChunkTest : public testing::Test {
 protected:
  template <typename... Columns>
  absl::StatusOr<ChunkPtr> Create(Columns... columns) {
    std::vector<ChunkColumn> all;
    (all.push_back(std::move(columns)), ...);
    return Chunk::Create(42, {1, 2, 3, false}, std::move(all));
  }
  void ExpectRefused(const absl::StatusOr<ChunkPtr>& chunk, const std::string& message) {
    EXPECT_EQ(chunk.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(chunk.status().message()), HasSubstr("Chunk 42"));
    EXPECT_THAT(std::string(chunk.status().message()), HasSubstr(message));
  }

  std::shared_ptr<memory::Arena> arena_ = memory::Arena::Create({.shareable = false});
};

TEST_F(ChunkTest, HoldsItsColumns) {
  const auto chunk = Create(ColumnOf(*arena_, DType::kFloat32, {3, 2}, 24),
                            StringColumn(*arena_, {3}, {"a", "", "bcd"}),
                            ColumnOf(*arena_, DType::kInt64, {3, 0, 5}, 0));
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ((*chunk)->key(), 42);
  EXPECT_EQ((*chunk)->range().end, 3);
  EXPECT_EQ((*chunk)->steps(), 3);
  EXPECT_EQ((*chunk)->columns().size(), 3);
  EXPECT_EQ((*chunk)->bytes(), 24 + 4 * 8 + 4);
}

TEST_F(ChunkTest, TheLastReferenceGivesTheBytesBack) {
  auto chunk = Create(ColumnOf(*arena_, DType::kFloat32, {3, 2}, 24)).value();
  EXPECT_EQ(arena_->stats().payload_bytes, 24);
  chunk.reset();
  EXPECT_EQ(arena_->stats().payload_bytes, 0);
}

TEST_F(ChunkTest, IllFormedColumnsAreRefused) {
  ExpectRefused(Create(), "no column");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {}, 4)), "column 0 has no axis");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {0, 4}, 0)), "no step");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {-1}, 0)), "no step");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {1, -1}, 0)), "negative");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {2}, 9)), "needs 8 bytes but has 9");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kFloat32, {2}, 4)), "needs 8 bytes but has 4");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kInvalid, {1}, 4)), "unknown type");
  ExpectRefused(Create(ColumnOf(*arena_, static_cast<DType>(99), {1}, 4)), "unknown type");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kUint8, {1, int64_t{1} << 62, 4}, 0)), "too many");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kInt64, {1, int64_t{1} << 61}, 0)), "too many");
  ExpectRefused(
      Create(ColumnOf(*arena_, DType::kUint8, {2}, 2), ColumnOf(*arena_, DType::kUint8, {3}, 3)),
      "column 1 has 3 steps but column 0 has 2");
}

TEST_F(ChunkTest, IllFormedStringsAreRefused) {
  ExpectRefused(Create(StringColumn(*arena_, {3}, {"a", "b"})), "String tensor");
  ExpectRefused(Create(StringColumn(*arena_, {1}, {"a", "b"})), "String tensor");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kString, {1}, 0)), "String tensor");
  ExpectRefused(Create(ColumnOf(*arena_, DType::kString, {int64_t{1} << 62, 4}, 8)), "too many");
}

TEST_F(ChunkTest, CopyToChunkCopies) {
  std::vector<float> values = {1, 2, 3, 4};
  const auto bytes =
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), sizeof(float) * 4);
  const auto chunk =
      CopyToChunk(*arena_, 42, {}, {tensor::TensorView{DType::kFloat32, {2, 2}, bytes}});
  ASSERT_TRUE(chunk.ok());
  values.assign(4, 0);
  float copied[4];
  std::memcpy(copied, (*chunk)->columns()[0].data.data(), sizeof(copied));
  EXPECT_THAT(copied, testing::ElementsAre(1, 2, 3, 4));
  ExpectRefused(CopyToChunk(*arena_, 42, {}, {tensor::TensorView{DType::kFloat32, {3, 2}, bytes}}),
                "needs 24");
}

TEST_F(ChunkTest, CopyToChunkReportsExhaustion) {
  auto small = memory::Arena::Create({.max_bytes = 128, .shareable = false});
  const std::vector<std::byte> bytes(1000);
  const auto chunk = CopyToChunk(*small, 1, {}, {tensor::TensorView{DType::kUint8, {1000}, bytes}});
  EXPECT_EQ(chunk.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace gear_reverb::storage
