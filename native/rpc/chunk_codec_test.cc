#include "native/rpc/chunk_codec.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/codec/delta.h"
#include "native/codec/snappy.h"
#include "native/rpc/fields.h"
#include "native/rpc/rpc_test_util.h"

namespace gear_reverb::rpc {
namespace {

using tensor::DType;
using ::testing::HasSubstr;

absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A ChunkData message of one tensor, as another writer may have made it.
struct RawTensor {
  int64_t dtype = 3;
  std::vector<int64_t> shape;
  std::string content;
  bool delta_encoded = false;

  std::string Message() const {
    MessageWriter shape_message;
    for (int64_t size : shape) {
      MessageWriter axis;
      axis.AddInt64(field::axis::kSize, size);
      shape_message.AddMessage(field::tensor_shape::kAxes, std::move(axis));
    }
    MessageWriter tensor;
    tensor.AddInt64(field::tensor_proto::kDtype, dtype);
    tensor.AddMessage(field::tensor_proto::kShape, std::move(shape_message));
    tensor.AddBytes(field::tensor_proto::kContent, content);
    MessageWriter tensors;
    tensors.AddMessage(field::chunk_tensors::kTensors, std::move(tensor));
    MessageWriter chunk;
    chunk.AddUint64(field::chunk_data::kChunkKey, 42);
    if (delta_encoded) chunk.AddBool(field::chunk_data::kDeltaEncoded, true);
    chunk.AddMessage(field::chunk_data::kData, std::move(tensors));
    return chunk.TakeString();
  }

  absl::Status Decode() const { return DecodeChunk(Message(), *memory::ProcessArena()).status(); }
};

class ChunkRoundTrip : public ::testing::TestWithParam<Compression> {};

TEST_P(ChunkRoundTrip, KeepsKeyRangeTypesShapesAndBytes) {
  const storage::ChunkPtr chunk = MakeMixedChunk(99);
  const std::string message = EncodeChunk(chunk, GetParam()).TakeString();
  const auto decoded = DecodeChunk(message, *memory::ProcessArena());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ((*decoded)->key(), 99u);
  EXPECT_EQ((*decoded)->range().episode_id, 7u);
  EXPECT_EQ((*decoded)->range().start, 3);
  EXPECT_EQ((*decoded)->range().end, 5);
  EXPECT_TRUE((*decoded)->range().sparse);
  ASSERT_EQ((*decoded)->columns().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ((*decoded)->columns()[i].dtype(), chunk->columns()[i].dtype());
    EXPECT_EQ((*decoded)->columns()[i].shape(), chunk->columns()[i].shape());
    EXPECT_EQ(BytesOf((*decoded)->columns()[i]), BytesOf(chunk->columns()[i]));
  }
}

TEST_P(ChunkRoundTrip, CarriesLargeColumnsWithoutACopy) {
  std::vector<float> values(1 << 18);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const storage::ChunkPtr chunk = MakeChunk(1, {}, {ViewOf(DType::kFloat32, {4, 1 << 16}, values)});
  MessageWriter writer = EncodeChunk(chunk, GetParam());
  const size_t announced = writer.size();
  const std::string message = writer.TakeString();
  EXPECT_EQ(message.size(), announced);
  const auto decoded = DecodeChunk(message, *memory::ProcessArena());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(BytesOf((*decoded)->columns()[0]), BytesOf(chunk->columns()[0]));
}

INSTANTIATE_TEST_SUITE_P(Compressions, ChunkRoundTrip,
                         ::testing::Values(Compression::kLiteral, Compression::kSnappy));

TEST(DecodeChunk, UndoesDeltaEncoding) {
  std::vector<int32_t> values = {5, -3, 7, 2147483647, -9, 0};
  const std::vector<int32_t> original = values;
  codec::DeltaEncode(DType::kInt32, {3, 2}, {reinterpret_cast<std::byte*>(values.data()), 24});
  const std::string raw(reinterpret_cast<const char*>(values.data()), 24);
  const RawTensor tensor{3, {3, 2}, codec::Compress(Bytes(raw)), true};
  const auto chunk = DecodeChunk(tensor.Message(), *memory::ProcessArena());
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(BytesOf((*chunk)->columns()[0]),
            std::string(reinterpret_cast<const char*>(original.data()), 24));
}

TEST(DecodeChunk, RefusesAContentThatIsNotTheShapesSize) {
  const RawTensor tensor{3, {3, 2}, codec::Compress(Bytes(std::string(20, 'x')))};
  EXPECT_THAT(std::string(tensor.Decode().message()),
              HasSubstr("Chunk 42, column 0: Tensor int32[3,2] needs 24 bytes but its content "
                        "declares 20"));
}

TEST(DecodeChunk, RefusesASizeThatTheContentCannotHold) {
  // Declares 2^36 bytes in a message of a few: must fail without allocating them.
  std::string lie = "\x80\x80\x80\x80\x80\x02";
  EXPECT_FALSE((RawTensor{4, {int64_t{1} << 36}, lie}).Decode().ok());
  const std::string zeros(100, '\0');
  std::string header = codec::LiteralHeader(size_t{1} << 30);
  EXPECT_THAT(std::string((RawTensor{4, {1 << 30}, header + zeros}).Decode().message()),
              HasSubstr("cannot hold"));
}

TEST(DecodeChunk, RefusesBadTypesAndShapes) {
  EXPECT_THAT(std::string((RawTensor{0, {1}, ""}).Decode().message()), HasSubstr("type number 0"));
  EXPECT_THAT(std::string((RawTensor{99, {1}, ""}).Decode().message()), HasSubstr("number 99"));
  EXPECT_THAT(std::string((RawTensor{3, {-1}, ""}).Decode().message()), HasSubstr("negative"));
  EXPECT_FALSE((RawTensor{3, {int64_t{1} << 40, int64_t{1} << 40}, ""}).Decode().ok());
  EXPECT_FALSE((RawTensor{3, {}, codec::Compress(Bytes("abcd"))}).Decode().ok()) << "no steps axis";
}

TEST(DecodeChunk, SurvivesMutationsOfAValidMessage) {
  const std::string valid = EncodeChunk(MakeMixedChunk(5), Compression::kSnappy).TakeString();
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string message = valid;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      switch (random() % 3) {
        case 0: message[random() % message.size()] = static_cast<char>(random()); break;
        case 1: message.resize(1 + random() % message.size()); break;
        case 2: message.insert(random() % message.size(), 1, static_cast<char>(random())); break;
      }
    }
    refused += !DecodeChunk(message, *memory::ProcessArena()).ok();
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace gear_reverb::rpc
