#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "native/tensor/dtype.h"
#include "native/tensor/packed_strings.h"
#include "native/tensor/shape.h"
#include "native/tensor/spec.h"

namespace gear_reverb::tensor {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(DTypeTest, NamesRoundTripAndAreDistinct) {
  int known = 0;
  for (int32_t number = -10; number < 200; ++number) {
    const DType dtype = static_cast<DType>(number);
    if (!IsKnown(number)) {
      EXPECT_EQ(Name(dtype), "invalid(" + std::to_string(number) + ")");
      EXPECT_EQ(ByteSize(dtype), 0);
      EXPECT_FALSE(IsIntegral(dtype));
      continue;
    }
    ++known;
    EXPECT_EQ(FromName(Name(dtype)), dtype);
    EXPECT_EQ(ByteSize(dtype) == 0, dtype == DType::kString);
  }
  EXPECT_EQ(known, 21);
  EXPECT_EQ(FromName("float128"), DType::kInvalid);
  EXPECT_EQ(FromName(""), DType::kInvalid);
  EXPECT_FALSE(IsKnown(0));
}

TEST(DTypeTest, SizesFollowTheNames) {
  EXPECT_EQ(ByteSize(FromName("bool")), 1);
  EXPECT_EQ(ByteSize(FromName("bfloat16")), 2);
  EXPECT_EQ(ByteSize(FromName("float64")), 8);
  EXPECT_EQ(ByteSize(FromName("complex128")), 16);
  for (const char* name : {"8", "16", "32", "64"}) {
    for (const char* sign : {"int", "uint"}) {
      const DType dtype = FromName(std::string(sign) + name);
      EXPECT_TRUE(IsIntegral(dtype)) << sign << name;
      EXPECT_EQ(ByteSize(dtype) * 8, std::stoul(name));
    }
  }
  for (const char* name : {"bool", "float16", "float32", "complex64", "string", "float8_e5m2"}) {
    EXPECT_FALSE(IsIntegral(FromName(name))) << name;
  }
}

TEST(ShapeTest, CountsElementsAndBytes) {
  EXPECT_EQ(*NumElements({}), 1);
  EXPECT_EQ(*NumElements({3, 4, 5}), 60);
  EXPECT_EQ(*NumElements({3, 0, 5}), 0);
  EXPECT_EQ(*NumElements({kMax}), kMax);
  EXPECT_EQ(*NumBytes(DType::kComplex128, {2, 3}), 96);
  EXPECT_EQ(*NumBytes(DType::kFloat32, {}), 4);
  EXPECT_EQ(*NumBytes(DType::kUint8, {kMax}), kMax);
}

TEST(ShapeTest, BadShapesAreRefused) {
  const std::vector<std::vector<int64_t>> bad = {{-1},
                                                 {0, -1},
                                                 {-1, 0},
                                                 {kMax, 2},
                                                 {2, kMax},
                                                 {kMax, kMax, 0},
                                                 {0, kMax, kMax},
                                                 {int64_t{1} << 32, int64_t{1} << 32},
                                                 {std::numeric_limits<int64_t>::min()}};
  for (const auto& shape : bad) {
    EXPECT_EQ(NumElements(shape).status().code(), absl::StatusCode::kInvalidArgument)
        << ShapeString(shape);
    EXPECT_FALSE(NumBytes(DType::kUint8, shape).ok());
  }
  EXPECT_FALSE(NumBytes(DType::kFloat32, {kMax / 2}).ok());
  EXPECT_FALSE(NumBytes(DType::kUint16, {kMax}).ok());
  EXPECT_FALSE(NumBytes(DType::kString, {1}).ok());
  EXPECT_FALSE(NumBytes(DType::kInvalid, {1}).ok());
}

TEST(ShapeTest, Prints) {
  EXPECT_EQ(ShapeString({}), "[]");
  EXPECT_EQ(ShapeString({3, -1, 2}), "[3,-1,2]");
}

TEST(SpecTest, FitsWhatItDescribes) {
  TensorSpec spec;
  spec.dtype = DType::kFloat32;
  spec.shape = {2, -1};
  EXPECT_EQ(ToString(spec), "float32[2,-1]");
  EXPECT_TRUE(Fits(spec, DType::kFloat32, {2, 7}));
  EXPECT_TRUE(Fits(spec, DType::kFloat32, {2, 0}));
  EXPECT_FALSE(Fits(spec, DType::kFloat32, {3, 7}));
  EXPECT_FALSE(Fits(spec, DType::kFloat32, {2}));
  EXPECT_FALSE(Fits(spec, DType::kFloat32, {2, 7, 1}));
  EXPECT_FALSE(Fits(spec, DType::kFloat64, {2, 7}));
  spec.unknown_rank = true;
  EXPECT_TRUE(Fits(spec, DType::kFloat32, {}));
  EXPECT_FALSE(Fits(spec, DType::kInt32, {}));
}

TEST(PackedStringsTest, RoundTripAndSlice) {
  const std::string nul("a\0b", 3);
  const std::vector<absl::string_view> values = {"", nul, "xyz", ""};
  const std::string packed = PackStrings(values);
  EXPECT_EQ(packed.size(), 5 * 8 + 6);
  EXPECT_TRUE(CheckPackedStrings(Bytes(packed), 4).ok());
  EXPECT_EQ(UnpackStrings(Bytes(packed), 4, 0, 4), values);
  EXPECT_EQ(UnpackStrings(Bytes(packed), 4, 1, 2), (std::vector<absl::string_view>{nul, "xyz"}));
  EXPECT_TRUE(UnpackStrings(Bytes(packed), 4, 4, 0).empty());
  EXPECT_TRUE(CheckPackedStrings(Bytes(PackStrings({})), 0).ok());
}

// Packed bytes with these offsets and this text.
std::string Raw(const std::vector<uint64_t>& offsets, const std::string& text) {
  std::string packed(offsets.size() * 8, '\0');
  std::memcpy(packed.data(), offsets.data(), packed.size());
  return packed + text;
}

TEST(PackedStringsTest, IllFormedPackingsAreRefused) {
  EXPECT_TRUE(CheckPackedStrings(Bytes(Raw({0, 2, 3}, "abc")), 2).ok());
  const std::vector<std::pair<std::string, int64_t>> bad = {
      {"", 0},
      {std::string(7, '\0'), 0},   // No room for an offset.
      {Raw({0, 2, 3}, "abc"), 1},  // Another count.
      {Raw({0, 2, 3}, "abc"), 3},
      {Raw({0, 2, 3}, "abc"), -1},
      {Raw({0, 2, 3}, "abc"), kMax},
      {Raw({0, 2, 3}, "abc"), std::numeric_limits<int64_t>::min()},
      {Raw({1, 2, 3}, "abc"), 2},  // Does not start at 0.
      {Raw({0, 3, 2}, "abc"), 2},
      {Raw({0, 3, 2}, "ab"), 2},   // Descends.
      {Raw({0, 2, 4}, "abc"), 2},  // Beyond the text.
      {Raw({0, ~uint64_t{0}, 3}, "abc"), 2},
      {Raw({0, 2, 3}, "abcd"), 2},  // Trailing text.
  };
  for (const auto& [packed, count] : bad) {
    EXPECT_EQ(CheckPackedStrings(Bytes(packed), count).code(), absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(packed) << " " << count;
  }
}

}  // namespace
}  // namespace gear_reverb::tensor
