#include "native/client/shm_batches.h"

#include <memory>
#include <string>
#include <utility>

#include "native/base/status.h"
#include "native/storage/trajectory.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::client {
namespace {

// The steps of one item's column, as slices of chunks.
absl::Status AddSlices(const batch::DrawnColumn& column, size_t item,
                       const std::shared_ptr<const void>& lease,
                       storage::TrajectoryBuilder::Column* slices) {
  const auto add = [&](int64_t steps, memory::Block data) -> absl::Status {
    tensor::Shape shape{steps};
    shape.insert(shape.end(), column.step_shape.begin(), column.step_shape.end());
    std::vector<storage::ChunkColumn> columns;
    columns.push_back({column.dtype, std::move(shape), std::move(data)});
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk, storage::Chunk::Create(0, {}, std::move(columns)));
    slices->slices.push_back({std::move(chunk), 0, static_cast<int32_t>(steps), 0});
    return absl::OkStatus();
  };
  slices->squeeze = column.squeezed;
  const batch::Piece* begin = column.pieces.data() + (item == 0 ? 0 : column.piece_ends[item - 1]);
  const batch::Piece* end = column.pieces.data() + column.piece_ends[item];
  if (column.dtype == tensor::DType::kString) {
    std::vector<absl::string_view> values;
    for (const batch::Piece* piece = begin; piece != end; ++piece) {
      values.emplace_back(reinterpret_cast<const char*>(piece->data), piece->bytes);
    }
    const std::string packed = tensor::PackStrings(values);
    GR_ASSIGN_OR_RETURN(memory::Block block, memory::ProcessArena()->Allocate(packed.size()));
    block.Write(0, {reinterpret_cast<const std::byte*>(packed.data()), packed.size()});
    return add(column.lengths[item], std::move(block));
  }
  GR_ASSIGN_OR_RETURN(const int64_t step_bytes, tensor::NumBytes(column.dtype, column.step_shape));
  if (step_bytes == 0) return add(column.lengths[item], {});
  for (const batch::Piece* piece = begin; piece != end; ++piece) {
    if (piece->bytes == 0 || piece->bytes % step_bytes != 0) {
      return base::InvalidArgument("A piece has ", piece->bytes, " bytes, and a step ", step_bytes,
                                   ".");
    }
    GR_RETURN_IF_ERROR(add(static_cast<int64_t>(piece->bytes / step_bytes),
                           memory::Block::Foreign(lease, piece->data, piece->bytes)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<table::SampledItem>> ToSamples(const batch::DrawnBatch& batch) {
  std::vector<table::SampledItem> samples(batch.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    table::SampledItem& sample = samples[i];
    sample.item.key = batch.keys[i];
    sample.item.priority = batch.priorities[i];
    sample.item.times_sampled = batch.times_sampled[i];
    sample.probability = batch.probabilities[i];
    sample.table_size = batch.table_sizes[i];
    sample.rate_limited = batch.rate_limited[i] != 0;
    if (batch.columns.empty()) continue;
    storage::TrajectoryBuilder trajectory;
    trajectory.columns.resize(batch.columns.size());
    for (size_t c = 0; c < batch.columns.size(); ++c) {
      GR_RETURN_IF_ERROR(AddSlices(batch.columns[c], i, batch.lease, &trajectory.columns[c]));
    }
    sample.item.trajectory = std::move(trajectory).Build();
    GR_RETURN_IF_ERROR(storage::CheckTrajectory(*sample.item.trajectory));
  }
  return samples;
}

}  // namespace gear_reverb::client
