// A trajectory: what an item refers to, as slices of chunks, column by column.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/storage/chunk.h"

namespace gear_reverb::storage {

// Steps [offset, offset + length) of column `column` of `chunk`.
struct ChunkSlice {
  ChunkPtr chunk;
  int32_t offset = 0;
  int32_t length = 0;
  int32_t column = 0;

  const ChunkColumn& source() const { return chunk->columns()[column]; }
};

// The slices in order make one tensor [sum of lengths, ...]; `squeeze` drops the first axis,
// which is then 1.
struct TrajectoryColumn {
  std::vector<ChunkSlice> slices;
  bool squeeze = false;

  int64_t length() const;
};

struct Trajectory {
  std::vector<TrajectoryColumn> columns;

  // Distinct chunks, in order of first use.
  std::vector<ChunkPtr> chunks() const;
};

using TrajectoryPtr = std::shared_ptr<const Trajectory>;

// INVALID_ARGUMENT naming the column and slice unless: there is a column; every column has a slice;
// every slice lies within its chunk and has a positive length; the slices of a column agree in
// dtype and step shape, and their tensor's size fits 64 bits; a squeezed column has exactly one
// step.
absl::Status CheckTrajectory(const Trajectory& trajectory);

// dtype, shape (squeezed if so) and byte count of a checked column's tensor.
struct ColumnLayout {
  tensor::DType dtype;
  tensor::Shape shape;
  int64_t bytes;  // Of the packed form for strings.
};
ColumnLayout LayoutOf(const TrajectoryColumn& column);

// Copies a checked column's tensor to `out`, which has LayoutOf(column).bytes bytes.
void Gather(const TrajectoryColumn& column, std::byte* out);

// Whether the trajectory can be cut into single steps, step t of every column (Reverb's
// "timesteps"): there is a column, all are equally long, and none is squeezed.
bool HasTimesteps(const Trajectory& trajectory);

}  // namespace gear_reverb::storage
