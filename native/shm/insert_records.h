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

enum class RecordKind : uint32_t { kChunk = 1, kItem = 2, kClose = 3 };

struct RecordHeader {
  uint32_t kind;
  uint32_t bytes;  // Of the body.
};

// An item of 10^5 slices takes 2 MB.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

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

// Append a record. RESOURCE_EXHAUSTED for an item larger than kMaxRecordBytes.
void EncodeChunk(const storage::Chunk& chunk, std::string* out);
absl::Status EncodeItem(uint64_t key, double priority, absl::string_view table,
                        const storage::Trajectory& trajectory,
                        absl::Span<const uint64_t> keep_chunk_keys, std::string* out);
void EncodeClose(std::string* out);

// From bodies in private memory. INVALID_ARGUMENT naming what is wrong: in a chunk, a column whose
// bytes cannot be those of its dtype and shape; in an item, what CheckTrajectory says. INTERNAL for
// an item with a chunk that `find` does not know (null).
absl::StatusOr<ChunkRecord> DecodeChunk(absl::string_view body);
absl::StatusOr<ItemRecord> DecodeItem(absl::string_view body,
                                      absl::FunctionRef<storage::ChunkPtr(uint64_t key)> find);

}  // namespace gear_reverb::shm
