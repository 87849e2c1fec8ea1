#include "native/shm/insert_records.h"

#include <limits>
#include <memory>
#include <utility>

#include "native/base/status.h"
#include "native/shm/encoding.h"
#include "native/tensor/dtype.h"

namespace gear_reverb::shm {
namespace {

// Appends a header, whose length is filled in when the body is there.
class RecordBuilder {
 public:
  RecordBuilder(RecordKind kind, std::string* out)
      : encoder(out), out_(*out), begin_(out->size()), kind_(kind) {
    encoder.Put(RecordHeader{});
  }
  size_t body_bytes() const { return out_.size() - begin_ - sizeof(RecordHeader); }
  void Finish() {
    const RecordHeader header{static_cast<uint32_t>(kind_), static_cast<uint32_t>(body_bytes())};
    std::memcpy(out_.data() + begin_, &header, sizeof(header));
  }
  // As if nothing had been appended.
  void Abandon() { out_.resize(begin_); }

  Encoder encoder;

 private:
  std::string& out_;
  const size_t begin_;
  const RecordKind kind_;
};

// As they lie in a record.
constexpr size_t kMinColumnBytes = sizeof(int32_t) + sizeof(uint32_t) + sizeof(uint64_t);
constexpr size_t kSliceBytes = sizeof(uint64_t) + 3 * sizeof(int32_t);
constexpr size_t kMinItemColumnBytes = sizeof(uint8_t) + sizeof(uint32_t) + kSliceBytes;

absl::Status CheckColumnBytes(const ChunkRecord::Column& column) {
  if (!tensor::IsKnown(static_cast<int32_t>(column.dtype))) {
    return base::InvalidArgument("has unknown type ", tensor::Name(column.dtype), ".");
  }
  if (column.dtype == tensor::DType::kString) {
    GR_ASSIGN_OR_RETURN(const int64_t count, tensor::NumElements(column.shape));
    if (column.bytes / sizeof(uint64_t) > static_cast<uint64_t>(count) &&
        column.bytes <= UINT32_MAX) {
      return absl::OkStatus();
    }
    return base::InvalidArgument("of ", count, " strings cannot have ", column.bytes, " bytes.");
  }
  GR_ASSIGN_OR_RETURN(const int64_t bytes, tensor::NumBytes(column.dtype, column.shape));
  if (bytes > UINT32_MAX) {
    return base::InvalidArgument("has ", bytes, " bytes; a column of a chunk takes 2^32 - 1.");
  }
  if (static_cast<uint64_t>(bytes) == column.bytes) return absl::OkStatus();
  return base::InvalidArgument("of ", tensor::Name(column.dtype), tensor::ShapeString(column.shape),
                               " needs ", bytes, " bytes but has ", column.bytes, ".");
}

void PutChunk(Encoder& encoder, uint64_t key, storage::SequenceRange range, size_t num_columns) {
  encoder.Put(key);
  encoder.Put(range.episode_id);
  encoder.Put(range.start);
  encoder.Put(range.end);
  encoder.Put<uint8_t>(range.sparse ? 1 : 0);
  encoder.Put(static_cast<uint32_t>(num_columns));
}

void PutColumn(Encoder& encoder, tensor::DType dtype, absl::Span<const int64_t> shape,
               uint64_t bytes) {
  encoder.Put(static_cast<int32_t>(dtype));
  encoder.PutArray(shape);
  encoder.Put(bytes);
}

absl::StatusOr<ChunkRecord> GetChunk(Decoder& decoder) {
  ChunkRecord chunk;
  chunk.key = decoder.Get<uint64_t>();
  chunk.range.episode_id = decoder.Get<uint64_t>();
  chunk.range.start = decoder.Get<int32_t>();
  chunk.range.end = decoder.Get<int32_t>();
  chunk.range.sparse = decoder.Get<uint8_t>() != 0;
  chunk.columns.resize(decoder.GetCount(kMinColumnBytes));
  for (size_t i = 0; i < chunk.columns.size(); ++i) {
    ChunkRecord::Column& column = chunk.columns[i];
    column.dtype = static_cast<tensor::DType>(decoder.Get<int32_t>());
    column.shape.resize(decoder.GetCount(sizeof(int64_t)));
    for (int64_t& axis : column.shape) axis = decoder.Get<int64_t>();
    column.bytes = decoder.Get<uint64_t>();
    if (!decoder.ok()) break;
    if (absl::Status status = CheckColumnBytes(column); !status.ok()) {
      return base::InvalidArgument("Chunk ", chunk.key, ", column ", i, " ", status.message());
    }
  }
  return chunk;
}

absl::Status CheckRows(const RowsRecord& rows) {
  if (rows.keys.empty() || rows.priorities.size() != rows.keys.size()) {
    return base::InvalidArgument("has ", rows.keys.size(), " keys and ", rows.priorities.size(),
                                 " priorities.");
  }
  if (rows.row_steps < 1 || (rows.squeeze && rows.row_steps != 1)) {
    return base::InvalidArgument("has ", rows.squeeze ? "squeezed " : "", "items of ",
                                 rows.row_steps, " steps.");
  }
  const int64_t steps = static_cast<int64_t>(rows.keys.size()) * rows.row_steps;
  if (steps > std::numeric_limits<int32_t>::max()) {
    return base::InvalidArgument("has ", steps, " steps, which are too many.");
  }
  if (rows.chunk.columns.empty()) return base::InvalidArgument("has no column.");
  if (rows.chunk.columns.size() > kMaxRowSlices / rows.keys.size()) {
    return base::InvalidArgument("has ", rows.chunk.columns.size(), " columns of ",
                                 rows.keys.size(), " rows, which are too many.");
  }
  for (size_t i = 0; i < rows.chunk.columns.size(); ++i) {
    const tensor::Shape& shape = rows.chunk.columns[i].shape;
    if (!shape.empty() && shape[0] == steps) continue;
    return base::InvalidArgument("needs ", steps, " steps but column ", i, " has shape ",
                                 tensor::ShapeString(shape), ".");
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeChunk(const storage::Chunk& chunk, std::string* out) {
  RecordBuilder record(RecordKind::kChunk, out);
  PutChunk(record.encoder, chunk.key(), chunk.range(), chunk.columns().size());
  for (const storage::ChunkColumn& column : chunk.columns()) {
    PutColumn(record.encoder, column.dtype(), column.shape(), column.data.size());
  }
  record.Finish();
}

void EncodeRows(uint64_t chunk_key, storage::SequenceRange range,
                absl::Span<const tensor::TensorView> columns, absl::string_view table,
                int32_t row_steps, bool squeeze, absl::Span<const uint64_t> keys,
                absl::Span<const double> priorities, std::string* out) {
  RecordBuilder record(RecordKind::kRows, out);
  Encoder& encoder = record.encoder;
  PutChunk(encoder, chunk_key, range, columns.size());
  for (const tensor::TensorView& column : columns) {
    PutColumn(encoder, column.dtype, column.shape, column.data.size());
  }
  encoder.PutString(table);
  encoder.Put(row_steps);
  encoder.Put<uint8_t>(squeeze ? 1 : 0);
  encoder.PutArray(keys);
  encoder.PutArray(priorities);
  record.Finish();
}

absl::Status EncodeItem(uint64_t key, double priority, absl::string_view table,
                        const storage::Trajectory& trajectory,
                        absl::Span<const uint64_t> keep_chunk_keys, std::string* out) {
  RecordBuilder record(RecordKind::kItem, out);
  Encoder& encoder = record.encoder;
  encoder.Put(key);
  encoder.Put(priority);
  encoder.PutString(table);
  encoder.Put(static_cast<uint32_t>(trajectory.columns.size()));
  for (const storage::TrajectoryColumn& column : trajectory.columns) {
    encoder.Put<uint8_t>(column.squeeze ? 1 : 0);
    encoder.Put(static_cast<uint32_t>(column.slices.size()));
    for (const storage::ChunkSlice& slice : column.slices) {
      encoder.Put(slice.chunk->key());
      encoder.Put(slice.offset);
      encoder.Put(slice.length);
      encoder.Put(slice.column);
    }
  }
  encoder.PutArray(keep_chunk_keys);
  if (record.body_bytes() > kMaxRecordBytes) {
    const size_t bytes = record.body_bytes();
    record.Abandon();
    return absl::ResourceExhaustedError(absl::StrCat("Item ", key, " has a description of ", bytes,
                                                     " bytes; at most ", kMaxRecordBytes,
                                                     " can be sent."));
  }
  record.Finish();
  return absl::OkStatus();
}

void EncodeClose(std::string* out) { RecordBuilder(RecordKind::kClose, out).Finish(); }

absl::StatusOr<ChunkRecord> DecodeChunk(absl::string_view body) {
  Decoder decoder(body);
  GR_ASSIGN_OR_RETURN(ChunkRecord chunk, GetChunk(decoder));
  if (!decoder.done()) return base::InvalidArgument("The record of a chunk is malformed.");
  return chunk;
}

absl::StatusOr<RowsRecord> DecodeRows(absl::string_view body) {
  Decoder decoder(body);
  RowsRecord rows;
  GR_ASSIGN_OR_RETURN(rows.chunk, GetChunk(decoder));
  rows.table = decoder.GetString();
  rows.row_steps = decoder.Get<int32_t>();
  rows.squeeze = decoder.Get<uint8_t>() != 0;
  rows.keys = decoder.GetArray<uint64_t>();
  rows.priorities = decoder.GetArray<double>();
  if (!decoder.done()) return base::InvalidArgument("The record of a chunk's items is malformed.");
  if (absl::Status status = CheckRows(rows); !status.ok()) {
    return base::InvalidArgument("Chunk ", rows.chunk.key, " of rows ", status.message());
  }
  return rows;
}

absl::StatusOr<ItemRecord> DecodeItem(absl::string_view body,
                                      absl::FunctionRef<storage::ChunkPtr(uint64_t key)> find) {
  Decoder decoder(body);
  ItemRecord item;
  item.key = decoder.Get<uint64_t>();
  item.priority = decoder.Get<double>();
  item.table = decoder.GetString();
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.resize(decoder.GetCount(kMinItemColumnBytes));
  for (storage::TrajectoryBuilder::Column& column : trajectory.columns) {
    column.squeeze = decoder.Get<uint8_t>() != 0;
    column.slices.resize(decoder.GetCount(kSliceBytes));
    for (storage::ChunkSlice& slice : column.slices) {
      const auto chunk_key = decoder.Get<uint64_t>();
      slice.offset = decoder.Get<int32_t>();
      slice.length = decoder.Get<int32_t>();
      slice.column = decoder.Get<int32_t>();
      slice.chunk = find(chunk_key);
      if (slice.chunk == nullptr) {
        return base::Internal("Could not find sequence chunk ", chunk_key, " of item ", item.key,
                              ".");
      }
    }
  }
  item.keep_chunk_keys = decoder.GetArray<uint64_t>();
  if (!decoder.done()) return base::InvalidArgument("The record of an item is malformed.");
  item.trajectory = std::move(trajectory).Build();
  if (absl::Status status = storage::CheckTrajectory(*item.trajectory); !status.ok()) {
    return base::InvalidArgument("Item ", item.key, ": ", status.message());
  }
  return item;
}

}  // namespace gear_reverb::shm
