#include "native/codec/delta.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace gear_reverb::codec {
namespace {

using tensor::DType;

class DeltaTest : public testing::TestWithParam<DType> {};

TEST_P(DeltaTest, RoundTripsAtAnyAlignment) {
  std::mt19937_64 random(1);
  const size_t width = tensor::ByteSize(GetParam());
  for (int round = 0; round < 50; ++round) {
    const int64_t rows = random() % 20, inner = random() % 40, shift = random() % 8;
    std::vector<std::byte> buffer(rows * inner * width + shift);
    for (std::byte& value : buffer) value = static_cast<std::byte>(random());
    const std::vector<std::byte> original = buffer;
    const auto data = absl::MakeSpan(buffer).subspan(shift);
    DeltaEncode(GetParam(), {rows, 1, inner}, data);
    if (rows > 2 && inner > 2) {
      EXPECT_NE(buffer, original);
    }
    DeltaDecode(GetParam(), {rows, 1, inner}, data);
    EXPECT_EQ(buffer, original);
  }
}

INSTANTIATE_TEST_SUITE_P(Integral, DeltaTest,
                         testing::Values(DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16,
                                         DType::kInt32, DType::kUint32, DType::kInt64,
                                         DType::kUint64),
                         [](const auto& info) { return tensor::Name(info.param); });

TEST(DeltaTest, RowsHoldWrappingDifferences) {
  std::vector<uint8_t> values = {250, 1, 4, 255, 4, 0};
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), values.size());
  DeltaEncode(DType::kUint8, {3, 2}, bytes);
  EXPECT_EQ(values, (std::vector<uint8_t>{250, 1, 10, 254, 0, 1}));

  std::vector<int32_t> wide = {INT32_MAX, INT32_MIN};
  DeltaEncode(DType::kInt32, {2, 1}, absl::MakeSpan(reinterpret_cast<std::byte*>(wide.data()), 8));
  EXPECT_EQ(wide, (std::vector<int32_t>{INT32_MAX, 1}));
}

TEST(DeltaTest, OtherTensorsAreUntouched) {
  std::vector<std::byte> data(64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i + 1);
  const std::vector<std::byte> original = data;
  const auto span = absl::MakeSpan(data);
  for (auto code : {DeltaEncode, DeltaDecode}) {
    code(DType::kFloat32, {4, 4}, span);
    code(DType::kBool, {8, 8}, span);
    code(DType::kComplex64, {4, 2}, span);
    code(DType::kString, {4, 4}, span);
    code(DType::kInvalid, {4, 4}, span);
    code(DType::kInt32, {16}, span);     // Rank 1.
    code(DType::kInt32, {}, span);       // Scalar.
    code(DType::kInt32, {1, 16}, span);  // One row.
    code(DType::kInt32, {0, 16}, span);
    code(DType::kInt32, {-4, 4}, span);
    code(DType::kInt32, {5, 4}, span);   // The data does not cut into five rows,
    code(DType::kInt32, {32, 4}, span);  // or not into whole elements.
  }
  EXPECT_EQ(data, original);
}

}  // namespace
}  // namespace gear_reverb::codec
