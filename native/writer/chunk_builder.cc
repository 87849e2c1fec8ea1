#include "native/writer/chunk_builder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "native/base/status.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::writer {
namespace {

int64_t StepsThatFit(absl::Span<const tensor::TensorView> step, int64_t max_steps) {
  for (const tensor::TensorView& view : step) {
    if (view.dtype == tensor::DType::kString || view.data.empty()) continue;
    const auto bytes = static_cast<int64_t>(view.data.size());
    max_steps = std::min(max_steps, std::max<int64_t>(ColumnBuffer::kMaxBytes / bytes, 1));
  }
  return max_steps;
}

}  // namespace

ChunkBuilder::ChunkBuilder(uint64_t key, uint64_t episode_id, int64_t max_steps,
                           absl::Span<const tensor::TensorView> step)
    : key_(key), max_steps_(StepsThatFit(step, max_steps)) {
  range_.episode_id = episode_id;
  columns_.reserve(step.size());
  for (const tensor::TensorView& view : step) {
    columns_.emplace_back(view.dtype, view.shape, max_steps_);
  }
}

absl::Status ChunkBuilder::Reserve(absl::Span<const tensor::TensorView> step) {
  for (size_t i = 0; i < columns_.size(); ++i) GR_RETURN_IF_ERROR(columns_[i].Reserve(step[i]));
  return absl::OkStatus();
}

void ChunkBuilder::Append(absl::Span<const tensor::TensorView> step, int32_t index) {
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].Append(step[i]);
  if (steps_ == 0) {
    range_.start = index;
  } else if (index != range_.end + 1) {
    range_.sparse = true;
  }
  range_.end = index;
  ++steps_;
}

absl::Status ChunkBuilder::Finish() {
  if (chunk_ == nullptr && steps_ > 0 && failed_.ok()) failed_ = Make();
  return failed_;
}

absl::Status ChunkBuilder::Make() {
  std::vector<storage::ChunkColumn> columns;
  columns.reserve(columns_.size());
  for (ColumnBuffer& buffer : columns_) {
    GR_ASSIGN_OR_RETURN(storage::ChunkColumn column, buffer.Release());
    columns.push_back(std::move(column));
  }
  GR_ASSIGN_OR_RETURN(chunk_, storage::Chunk::Create(key_, range_, std::move(columns)));
  return absl::OkStatus();
}

absl::StatusOr<TensorCopy> ChunkBuilder::Read(int64_t column, int64_t step) const {
  GR_RETURN_IF_ERROR(failed_);
  if (chunk_ == nullptr) return columns_[column].Read(step);
  const storage::ChunkSlice slice{chunk_, static_cast<int32_t>(step), 1,
                                  static_cast<int32_t>(column)};
  const storage::TrajectoryColumn cell{{&slice, 1}, true};
  const storage::ColumnLayout layout = storage::LayoutOf(cell);
  TensorCopy copy{layout.dtype, layout.shape, std::string(layout.bytes, '\0')};
  storage::Gather(cell, reinterpret_cast<std::byte*>(copy.bytes.data()));
  return copy;
}

}  // namespace gear_reverb::writer
