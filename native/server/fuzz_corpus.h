// For fuzzing: well-formed messages of every method, and their schemas.
#pragma once

#include <string>
#include <vector>

#include "native/codec/delta.h"
#include "native/codec/snappy.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/fields.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/methods.h"
#include "native/rpc/requests.h"
#include "native/rpc/rpc_test_util.h"
#include "native/server/fuzz_message.h"

namespace gear_reverb::server::fuzz {

// The tables of the server under test. Those but the first may make an insert or a sample wait.
inline constexpr char kTable[] = "prioritized", kLimitedTable[] = "limited", kQueue[] = "queue";

struct Method {
  const char* path;
  Schema schema;
  // Streams: messages that are well-formed in this order. Unary: one of one message.
  std::vector<std::vector<std::string>> calls;
};

inline Schema MakeInsertSchema() {
  namespace f = rpc::field;
  static const Schema leaf, axes{{{f::tensor_shape::kAxes, &leaf}}};
  static const Schema tensor{{{f::tensor_proto::kShape, &axes}}};
  static const Schema tensors{{{f::chunk_tensors::kTensors, &tensor}}};
  static const Schema chunk{{{f::chunk_data::kSequenceRange, &leaf},
                             {f::chunk_data::kData, &tensors},
                             {f::chunk_data::kDeprecatedTensors, &tensor}}};
  static const Schema column{{{f::column::kSlices, &leaf}}};
  static const Schema trajectory{{{f::trajectory::kColumns, &column}}};
  static const Schema item{{{f::item::kInsertedAt, &leaf}, {f::item::kTrajectory, &trajectory}}};
  return {{{f::insert_request::kChunks, &chunk}, {f::insert_request::kItems, &item}}};
}

// Three steps, of every element size and of strings, in one chunk, as the legacy writer has them.
inline storage::ChunkPtr MakeWideChunk(uint64_t key) {
  using tensor::DType;
  const std::vector<uint8_t> bytes = {1, 2, 3, 250, 251, 252};
  const std::vector<int16_t> shorts = {-1, 0, 1};
  const std::vector<float> floats(3 * 40, 0.5f);
  const std::vector<double> complexes(2 * 3, 1.5);
  const std::vector<int64_t> none;
  const std::string text =
      tensor::PackStrings({"a", "", std::string(300, 'x'), "b", std::string("\0c", 2), "d"});
  return rpc::MakeChunk(
      key, {7, 0, 2, false},
      {rpc::ViewOf(DType::kUint8, {3, 2}, bytes), rpc::ViewOf(DType::kInt16, {3}, shorts),
       rpc::ViewOf(DType::kFloat32, {3, 5, 8}, floats),
       rpc::ViewOf(DType::kComplex128, {3}, complexes), rpc::ViewOf(DType::kInt64, {3, 0, 4}, none),
       rpc::ViewOfText({3, 2}, text)});
}

// The same chunk's first column as a delta-coded chunk of its own.
inline std::string DeltaCodedChunk(uint64_t key) {
  namespace f = rpc::field;
  std::vector<std::byte> rows(64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * i);
  const int64_t shape[] = {4, 2, 2};
  codec::DeltaEncode(tensor::DType::kUint32, shape, absl::MakeSpan(rows));
  rpc::MessageWriter shape_message;
  for (int64_t size : shape) {
    rpc::MessageWriter axis;
    axis.AddInt64(f::axis::kSize, size);
    shape_message.AddMessage(f::tensor_shape::kAxes, std::move(axis));
  }
  rpc::MessageWriter tensor, tensors, range, chunk;
  tensor.AddInt64(f::tensor_proto::kDtype, static_cast<int>(tensor::DType::kUint32));
  tensor.AddMessage(f::tensor_proto::kShape, std::move(shape_message));
  tensor.AddBytes(f::tensor_proto::kContent, codec::Compress(rows));
  tensors.AddMessage(f::chunk_tensors::kTensors, std::move(tensor));
  range.AddUint64(f::sequence_range::kEpisodeId, 9);
  range.AddInt64(f::sequence_range::kEnd, 3);
  chunk.AddUint64(f::chunk_data::kChunkKey, key);
  chunk.AddMessage(f::chunk_data::kSequenceRange, std::move(range));
  chunk.AddMessage(f::chunk_data::kData, std::move(tensors));
  chunk.AddBool(f::chunk_data::kDeltaEncoded, true);
  return chunk.TakeString();
}

inline std::string MakeItem(uint64_t key, const std::string& table,
                            std::vector<storage::TrajectoryBuilder::Column> columns) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.assign(columns.begin(), columns.end());
  table::Item item;
  item.key = key;
  item.priority = 0.5;
  item.times_sampled = 3;
  item.inserted_at = absl::FromUnixNanos(1234567890123456789);
  item.trajectory = std::move(trajectory).Build();
  return rpc::EncodeItem(item, table).TakeString();
}

inline std::string MakeInsertRequest(const std::vector<std::string>& chunks,
                                     const std::vector<std::string>& items,
                                     const std::vector<uint64_t>& keep) {
  namespace f = rpc::field::insert_request;
  rpc::MessageWriter request;
  for (const std::string& chunk : chunks) request.AddBytes(f::kChunks, chunk);
  for (const std::string& item : items) request.AddBytes(f::kItems, item);
  request.AddPackedUint64(f::kKeepChunkKeys, keep);
  return request.TakeString();
}

inline std::vector<std::vector<std::string>> InsertCalls() {
  const auto wide = MakeWideChunk(11), mixed = rpc::MakeMixedChunk(12),
             more = rpc::MakeMixedChunk(13);
  const auto near = [](const auto& chunk) {
    return rpc::EncodeChunk(chunk, rpc::Compression::kLiteral).TakeString();
  };
  const auto far = [](const auto& chunk) {
    return rpc::EncodeChunk(chunk, rpc::Compression::kSnappy).TakeString();
  };
  std::vector<storage::TrajectoryBuilder::Column> all;
  for (int32_t c = 0; c < 6; ++c) all.push_back({{{wide, 0, 3, c}}, false});
  const std::vector<storage::TrajectoryBuilder::Column> two = {
      {{{mixed, 1, 2, 0}, {more, 0, 3, 0}}, false}, {{{more, 2, 1, 1}}, true}};
  return {
      {MakeInsertRequest({far(wide)}, {MakeItem(1, kTable, all)}, {11})},
      {MakeInsertRequest({near(mixed)}, {}, {}),
       MakeInsertRequest({near(more)}, {MakeItem(2, kTable, two)}, {12, 13}),
       MakeInsertRequest({}, {MakeItem(3, kQueue, two), MakeItem(4, kTable, two)}, {13}),
       MakeInsertRequest({DeltaCodedChunk(14)},
                         {MakeItem(5, kLimitedTable, {{{{more, 0, 1, 1}}, true}})}, {14})},
      {MakeInsertRequest({DeltaCodedChunk(12), far(more)},
                         {MakeItem(6, kTable, {{{{mixed, 1, 2, 0}}, false}}),
                          MakeItem(7, kLimitedTable, {{{{more, 0, 3, 1}}, false}}),
                          MakeItem(8, kLimitedTable, {{{{more, 1, 1, 0}}, true}})},
                         {})},
  };
}

inline std::string MakeSampleRequest(const char* table, int64_t n, absl::Duration timeout) {
  return rpc::EncodeSampleRequest({table, n, timeout}).TakeString();
}

inline std::vector<Method> AllMethods() {
  namespace f = rpc::field;
  static const Schema leaf;
  rpc::MessageWriter initialize;
  initialize.AddInt64(1, 4242);
  initialize.AddBytes(2, kTable);
  initialize.AddBool(3, false);
  const std::string mutate =
      rpc::EncodeMutateRequest(kTable, {{1, 0.25}, {2, 4.0}, {99, 1.0}}, {3, 98}).TakeString();
  const absl::Duration soon = absl::Milliseconds(1);
  return {
      {rpc::method::kInsertStream, MakeInsertSchema(), InsertCalls()},
      {rpc::method::kSampleStream,
       {{{f::sample_request::kTimeout, &leaf}}},
       {{MakeSampleRequest(kTable, 3, soon), MakeSampleRequest(kTable, 100, soon)},
        {MakeSampleRequest(kQueue, 1, soon)},
        {MakeSampleRequest(kLimitedTable, 1, soon)}}},
      {rpc::method::kMutatePriorities, {{{f::mutate_request::kUpdates, &leaf}}}, {{mutate}}},
      {rpc::method::kReset, {}, {{rpc::EncodeResetRequest(kTable).TakeString()}}},
      {rpc::method::kServerInfo, {}, {{""}}},
      {rpc::method::kCheckpoint, {}, {{""}}},
      {rpc::method::kInitializeConnection, {}, {{initialize.TakeString()}}},
      {rpc::method::kHello, {}, {{""}}},
      {rpc::method::kReportUnused,
       {},
       {{rpc::EncodeReportUnusedRequest({kTable, 3}).TakeString()}}},
  };
}

// The messages of one call with mistakes: in messages, in their order, in their number.
inline std::vector<std::string> MutatedCall(const Method& method, Random& random) {
  const auto& calls = method.calls;
  std::vector<std::string> messages = calls[random() % calls.size()];
  switch (random() % 8) {
    case 0: std::shuffle(messages.begin(), messages.end(), random); break;
    case 1: messages.erase(messages.begin() + random() % messages.size()); break;
    case 2: messages.push_back(messages[random() % messages.size()]); break;
    case 3:
      for (const std::string& message : calls[random() % calls.size()]) messages.push_back(message);
      break;
    default: break;
  }
  for (std::string& message : messages) {
    if (random() % messages.size() == 0) message = Mutated(message, method.schema, random);
  }
  return messages;
}

}  // namespace gear_reverb::server::fuzz
