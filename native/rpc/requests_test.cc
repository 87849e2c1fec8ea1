#include "native/rpc/requests.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/rpc/fields.h"
#include "native/rpc/signature_codec.h"
#include "native/rpc/table_info_codec.h"

namespace gear_reverb::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(InsertRequest, ReadsChunksItemsAndKeysPackedOrNot) {
  MessageWriter message;
  message.AddBytes(field::insert_request::kChunks, "chunk");
  message.AddBytes(field::insert_request::kItems, "item one");
  message.AddBytes(field::insert_request::kItems, "item two");
  message.AddUint64(field::insert_request::kKeepChunkKeys, 5);
  message.AddPackedUint64(field::insert_request::kKeepChunkKeys, {6, uint64_t{1} << 63});
  const std::string bytes = message.TakeString();
  const auto request = DecodeInsertRequest(bytes);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->chunks, ElementsAre("chunk"));
  EXPECT_THAT(request->items, ElementsAre("item one", "item two"));
  EXPECT_THAT(request->keep_chunk_keys, ElementsAre(5, 6, uint64_t{1} << 63));
}

TEST(InsertResponse, RoundTrip) {
  const auto keys = DecodeInsertResponse(EncodeInsertResponse({1, 200, ~uint64_t{0}}).TakeString());
  ASSERT_TRUE(keys.ok());
  EXPECT_THAT(*keys, ElementsAre(1, 200, ~uint64_t{0}));
}

TEST(MutateRequest, RoundTrip) {
  const auto request =
      DecodeMutateRequest(EncodeMutateRequest("t", {{7, 0.5}, {0, 0.0}}, {9, 10}).TakeString());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->table, "t");
  ASSERT_EQ(request->updates.size(), 2u);
  EXPECT_EQ(request->updates[0].key, 7u);
  EXPECT_EQ(request->updates[0].priority, 0.5);
  EXPECT_THAT(request->delete_keys, ElementsAre(9, 10));
}

TEST(SampleRequest, RoundTripAndNoTimeout) {
  const auto timed =
      DecodeSampleRequest(EncodeSampleRequest({"t", 12, absl::Milliseconds(1500)}).TakeString());
  ASSERT_TRUE(timed.ok());
  EXPECT_EQ(timed->table, "t");
  EXPECT_EQ(timed->num_samples, 12);
  EXPECT_EQ(timed->timeout, absl::Milliseconds(1500));
  const auto patient =
      DecodeSampleRequest(EncodeSampleRequest({"t", -3, absl::InfiniteDuration()}).TakeString());
  ASSERT_TRUE(patient.ok());
  EXPECT_EQ(patient->num_samples, -3);
  EXPECT_EQ(patient->timeout, absl::InfiniteDuration());
  const auto zero =
      DecodeSampleRequest(EncodeSampleRequest({"t", 1, absl::ZeroDuration()}).TakeString());
  EXPECT_EQ(zero->timeout, absl::InfiniteDuration()) << "as Reverb: a timeout of 0 is none";
}

TEST(ReportUnusedRequest, RoundTripAndNoNegativeCount) {
  const auto request = DecodeReportUnusedRequest(EncodeReportUnusedRequest({"t", 12}).TakeString());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->table, "t");
  EXPECT_EQ(request->count, 12);
  for (const int64_t count : {0, -1}) {
    const auto refused =
        DecodeReportUnusedRequest(EncodeReportUnusedRequest({"t", count}).TakeString());
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  }
}

TEST(Requests, MalformedBytesAreInvalidArguments) {
  const std::string truncated("\x0a\x7f", 2);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeInsertRequest(truncated).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeMutateRequest(truncated).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSampleRequest(truncated).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeResetRequest(truncated).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSampleResponse(truncated).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeServerInfo(truncated).status()));
}

TEST(Requests, NothingIsReadPastTheEnd) {
  const std::string fifo = "\x08\x01";  // In one piece of memory, of which a part is the message.
  EXPECT_TRUE(DecodeSelectorOptions(fifo).ok());
  const auto cut = DecodeSelectorOptions(absl::string_view(fifo).substr(0, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(cut.status())) << cut.status();
}

TEST(Requests, SurviveRandomBytes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 64);
    (void)DecodeInsertRequest(bytes).ok();
    (void)DecodeMutateRequest(bytes).ok();
    (void)DecodeSampleRequest(bytes).ok();
    (void)DecodeSampleResponse(bytes).ok();
    (void)DecodeSignature(bytes).ok();
    (void)DecodeSelectorOptions(bytes).ok();
  }
}

TEST(SelectorOptions, RoundTripOfEveryStrategy) {
  const selectors::SelectorOptions all[] = {
      selectors::FifoOptions{},     selectors::LifoOptions{},
      selectors::UniformOptions{},  selectors::PrioritizedOptions{0.75},
      selectors::HeapOptions{true}, selectors::HeapOptions{false}};
  for (const auto& options : all) {
    const auto decoded = DecodeSelectorOptions(EncodeSelectorOptions(options).TakeString());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(selectors::ToString(*decoded), selectors::ToString(options));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSelectorOptions("").status()));
}

// StructuredValue {53: dict {1: {1: name, 2: value}…}} and so on, written by hand.
std::string Spec(int dtype, const std::vector<int64_t>& shape) {
  MessageWriter shape_message;
  for (int64_t size : shape) {
    MessageWriter axis;
    axis.AddInt64(1, size);
    shape_message.AddMessage(2, std::move(axis));
  }
  MessageWriter spec;
  spec.AddMessage(2, std::move(shape_message));
  spec.AddInt64(3, dtype);
  MessageWriter value;
  value.AddMessage(33, std::move(spec));
  return value.TakeString();
}

std::string Dict(const std::vector<std::pair<std::string, std::string>>& fields) {
  MessageWriter dict;
  for (const auto& [name, value] : fields) {
    MessageWriter pair;
    pair.AddBytes(1, name);
    pair.AddBytes(2, value);
    dict.AddMessage(1, std::move(pair));
  }
  MessageWriter value;
  value.AddMessage(53, std::move(dict));
  return value.TakeString();
}

TEST(Signature, LeavesComeInFlatteningOrderWithTheirPaths) {
  const auto signature =
      DecodeSignature(Dict({{"b", Spec(1, {-1, 2})}, {"a", Dict({{"x", Spec(9, {})}})}}));
  ASSERT_TRUE(signature.ok()) << signature.status();
  ASSERT_EQ(signature->size(), 2u);
  EXPECT_EQ((*signature)[0].path, "a/x");
  EXPECT_EQ((*signature)[0].dtype, tensor::DType::kInt64);
  EXPECT_EQ((*signature)[1].path, "b");
  EXPECT_EQ(tensor::ToString((*signature)[1]), "float32[-1,2]");
}

TEST(Signature, RefusesEndlessNests) {
  std::string value = Spec(1, {});
  for (int depth = 0; depth < 100; ++depth) value = Dict({{"d", value}});
  EXPECT_THAT(std::string(DecodeSignature(value).status().message()), HasSubstr("too deeply"));
}

}  // namespace
}  // namespace gear_reverb::rpc
