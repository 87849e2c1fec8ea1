#include "native/storage/stacked_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "native/base/status.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::storage {
namespace {

using tensor::DType;
using tensor::TensorView;

constexpr int64_t kMaxSteps = std::numeric_limits<int32_t>::max();

uint64_t OffsetAt(const TensorView& strings, int64_t element) {
  uint64_t offset;
  std::memcpy(&offset, strings.data.data() + element * sizeof(offset), sizeof(offset));
  return offset;
}

absl::Status CheckBytes(const TensorView& column) {
  GR_ASSIGN_OR_RETURN(const int64_t elements, tensor::NumElements(column.shape));
  if (column.dtype == DType::kString) return tensor::CheckPackedStrings(column.data, elements);
  GR_ASSIGN_OR_RETURN(const int64_t bytes, tensor::NumBytes(column.dtype, column.shape));
  if (static_cast<uint64_t>(bytes) == column.data.size()) return absl::OkStatus();
  return base::InvalidArgument("needs ", bytes, " bytes but has ", column.data.size(), ".");
}

}  // namespace

absl::StatusOr<StackedRows> StackedRows::Create(std::vector<TensorView> columns) {
  if (columns.empty()) return base::InvalidArgument("There is no column.");
  StackedRows rows;
  bool have_steps = true;
  for (size_t i = 0; i < columns.size(); ++i) {
    const tensor::Shape& shape = columns[i].shape;
    if (shape.empty()) return base::InvalidArgument("Column ", i, " has no axis of items.");
    if (shape[0] != columns[0].shape[0]) {
      return base::InvalidArgument("Column ", i, " has ", shape[0], " items but column 0 has ",
                                   columns[0].shape[0], ".");
    }
    if (const absl::Status status = CheckBytes(columns[i]); !status.ok()) {
      return base::InvalidArgument("Column ", i, " ", status.message());
    }
    have_steps = have_steps && shape.size() > 1 && shape[1] > 0 && shape[1] <= kMaxSteps &&
                 columns[0].shape.size() > 1 && shape[1] == columns[0].shape[1];
  }
  rows.size_ = columns[0].shape[0];
  rows.squeeze_ = !have_steps;
  if (have_steps) rows.row_steps_ = columns[0].shape[1];
  for (const TensorView& column : columns) {
    // No overflow, but for shapes without elements, whose other axes are not bounded.
    int64_t elements = 1;
    for (size_t axis = 1; axis < column.shape.size(); ++axis) {
      if (__builtin_mul_overflow(elements, column.shape[axis], &elements)) elements = 0;
    }
    rows.row_elements_.push_back(elements);
    const bool strings = column.dtype == DType::kString;
    rows.has_strings_ = rows.has_strings_ || strings;
    if (rows.size_ > 0) {
      rows.row_bytes_ += elements * (strings ? sizeof(uint64_t) : tensor::ByteSize(column.dtype));
    }
  }
  rows.columns_ = std::move(columns);
  return rows;
}

int64_t StackedRows::Bytes(int64_t begin, int64_t end) const {
  int64_t bytes = (end - begin) * row_bytes_;
  for (size_t i = 0; has_strings_ && i < columns_.size(); ++i) {
    if (columns_[i].dtype != DType::kString) continue;
    bytes += OffsetAt(columns_[i], end * row_elements_[i]) -
             OffsetAt(columns_[i], begin * row_elements_[i]);
  }
  return bytes;
}

int64_t StackedRows::ChunkEnd(int64_t begin) const {
  int64_t most = std::min({size_ - begin, kMaxRows, kMaxSteps / row_steps_});
  if (!has_strings_) {
    if (row_bytes_ > 0) most = std::min(most, kChunkBytes / row_bytes_);
    return begin + std::max<int64_t>(1, most);
  }
  int64_t end = begin + 1;
  while (end < begin + most && Bytes(begin, end + 1) <= kChunkBytes) ++end;
  return end;
}

TensorView StackedRows::Part(size_t column, int64_t begin, int64_t end, std::string* packed) const {
  const TensorView& from = columns_[column];
  TensorView part{from.dtype, from.shape, {}};
  part.shape[0] = end - begin;
  if (!squeeze_) {
    part.shape.erase(part.shape.begin());
    part.shape[0] *= end - begin;
  }
  const int64_t elements = row_elements_[column];
  if (from.dtype == DType::kString) {
    *packed = tensor::PackStrings(tensor::UnpackStrings(
        from.data, from.shape[0] * elements, begin * elements, (end - begin) * elements));
    part.data = {reinterpret_cast<const std::byte*>(packed->data()), packed->size()};
  } else {
    const size_t row_bytes = elements * tensor::ByteSize(from.dtype);
    part.data = from.data.subspan(begin * row_bytes, (end - begin) * row_bytes);
  }
  return part;
}

absl::StatusOr<ChunkPtr> StackedRows::Copy(memory::Arena& arena, uint64_t key, uint64_t episode_id,
                                           int64_t begin, int64_t end) const {
  std::string packed;
  std::vector<ChunkColumn> columns;
  columns.reserve(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    const TensorView part = Part(i, begin, end, &packed);
    GR_ASSIGN_OR_RETURN(memory::Block block, arena.Allocate(part.data.size()));
    block.Write(0, part.data);
    columns.push_back({part.dtype, part.shape, std::move(block)});
  }
  return Chunk::Create(key, Range(episode_id, begin, end), std::move(columns));
}

}  // namespace gear_reverb::storage
