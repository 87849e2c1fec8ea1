// What goes through an insert stream's ring: records of a header and a body; a chunk's bytes,
// column by column, follow its record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::shm {

enum class RecordKind : uint32_t { kChunk = 1, kItem = 2, kClose = 3, kRows = 4 };

struct RecordHeader {
  uint32_t kind;
  uint32_t bytes;  // Of the body.
};

// An item of 10^5 slices takes 2 MB.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

// Columns times rows of a record of rows: once drawn each costs the server a slice, and its sender
// nothing.
inline constexpr size_t kMaxRowSlices = size_t{1} << 20;

// A chunk but for its bytes.
struct ChunkRecord {
  struct Column {
    tensor::DType dtype;
    tensor::Shape shape;
    uint64_t bytes;
  };
  uint64_t key = 0;
  storage::SequenceRange range;
  std::vector<Column> columns;
};

struct ItemRecord {
  uint64_t key = 0;
  double priority = 0;
  absl::string_view table;  // Into the body.
  storage::TrajectoryPtr trajectory;
  std::vector<uint64_t> keep_chunk_keys;  // What the server holds after this item.
};

// A chunk, but for its bytes, and an item for each of its rows, which are `row_steps` steps long.
struct RowsRecord {
  ChunkRecord chunk;
  absl::string_view table;  // Into the body.
  int32_t row_steps = 0;
  bool squeeze = false;
  std::vector<uint64_t> keys;  // By row.
  std::vector<double> priorities;
};

// Append a record. RESOURCE_EXHAUSTED for an item larger than kMaxRecordBytes.
void EncodeChunk(const storage::Chunk& chunk, std::string* out);
absl::Status EncodeItem(uint64_t key, double priority, absl::string_view table,
                        const storage::Trajectory& trajectory,
                        absl::Span<const uint64_t> keep_chunk_keys, std::string* out);
void EncodeClose(std::string* out);
// The bytes of `columns`, which are a chunk's, follow the record.
void EncodeRows(uint64_t chunk_key, storage::SequenceRange range,
                absl::Span<const tensor::TensorView> columns, absl::string_view table,
                int32_t row_steps, bool squeeze, absl::Span<const uint64_t> keys,
                absl::Span<const double> priorities, std::string* out);

// From bodies in private memory. INVALID_ARGUMENT naming what is wrong: in a chunk, a column whose
// bytes cannot be those of its dtype and shape; in an item, what CheckTrajectory says; in rows,
// also columns, keys or priorities that are not as many as there are rows. INTERNAL for an item
// with a chunk that `find` does not know (null).
absl::StatusOr<ChunkRecord> DecodeChunk(absl::string_view body);
absl::StatusOr<ItemRecord> DecodeItem(absl::string_view body,
                                      absl::FunctionRef<storage::ChunkPtr(uint64_t key)> find);
absl::StatusOr<RowsRecord> DecodeRows(absl::string_view body);

}  // namespace gear_reverb::shm
