#include "native/client/shm_batches.h"

#include <memory>
#include <string>
#include <utility>

#include "native/base/status.h"
#include "native/storage/trajectory.h"
#include "native/tensor/packed_strings.h"

namespace gear_reverb::client {
namespace {

std::string StepText(const batch::DrawnColumn& column) {
  return absl::StrCat(tensor::Name(column.dtype), tensor::ShapeString(column.step_shape));
}

// As batch::Flatten has it for items that are drawn at once.
absl::Status CheckAlike(const batch::DrawnBatch& first, const batch::DrawnBatch& next) {
  constexpr char kNoBatch[] = ": they cannot be one batch.";
  const uint64_t first_key = first.keys[0], key = next.keys[0];
  if (first.columns.size() != next.columns.size()) {
    return base::InvalidArgument("Item ", key, " has ", next.columns.size(), " columns, but item ",
                                 first_key, " has ", first.columns.size(), kNoBatch);
  }
  for (size_t i = 0; i < first.columns.size(); ++i) {
    const batch::DrawnColumn &x = first.columns[i], &y = next.columns[i];
    if (x.squeezed != y.squeezed) {
      return base::InvalidArgument("Column ", i, " of item ", key, " is ", y.squeezed ? "" : "not ",
                                   "squeezed, but that of item ", first_key, " is ",
                                   x.squeezed ? "" : "not ", "squeezed", kNoBatch);
    }
    if (x.dtype != y.dtype || x.step_shape != y.step_shape) {
      return base::InvalidArgument("Column ", i, " of item ", key, " has steps of ", StepText(y),
                                   ", but that of item ", first_key, " of ", StepText(x), kNoBatch);
    }
  }
  return absl::OkStatus();
}

template <typename T>
void AppendValues(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

template <typename T>
std::vector<T> CutValues(std::vector<T>* values, size_t n) {
  std::vector<T> rest(values->begin() + n, values->end());
  values->resize(n);
  return rest;
}

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

absl::Status Append(batch::DrawnBatch from, batch::DrawnBatch* to) {
  if (to->size() == 0) {
    *to = std::move(from);
    return absl::OkStatus();
  }
  GR_RETURN_IF_ERROR(CheckAlike(*to, from));
  AppendValues(from.keys, &to->keys);
  AppendValues(from.probabilities, &to->probabilities);
  AppendValues(from.priorities, &to->priorities);
  AppendValues(from.table_sizes, &to->table_sizes);
  AppendValues(from.times_sampled, &to->times_sampled);
  AppendValues(from.rate_limited, &to->rate_limited);
  for (size_t i = 0; i < to->columns.size(); ++i) {
    batch::DrawnColumn& column = to->columns[i];
    const auto pieces = static_cast<uint32_t>(column.pieces.size());
    for (uint32_t& end : from.columns[i].piece_ends) end += pieces;
    AppendValues(from.columns[i].lengths, &column.lengths);
    AppendValues(from.columns[i].pieces, &column.pieces);
    AppendValues(from.columns[i].piece_ends, &column.piece_ends);
  }
  using Leases = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  to->lease = std::make_shared<const Leases>(std::move(to->lease), std::move(from.lease));
  return absl::OkStatus();
}

batch::DrawnBatch SplitOff(batch::DrawnBatch* batch, size_t n) {
  batch::DrawnBatch rest;
  rest.keys = CutValues(&batch->keys, n);
  rest.probabilities = CutValues(&batch->probabilities, n);
  rest.priorities = CutValues(&batch->priorities, n);
  rest.table_sizes = CutValues(&batch->table_sizes, n);
  rest.times_sampled = CutValues(&batch->times_sampled, n);
  rest.rate_limited = CutValues(&batch->rate_limited, n);
  for (batch::DrawnColumn& column : batch->columns) {
    batch::DrawnColumn& other = rest.columns.emplace_back();
    other.dtype = column.dtype;
    other.step_shape = column.step_shape;
    other.squeezed = column.squeezed;
    other.lengths = CutValues(&column.lengths, n);
    other.piece_ends = CutValues(&column.piece_ends, n);
    const uint32_t pieces = n == 0 ? 0 : column.piece_ends.back();
    for (uint32_t& end : other.piece_ends) end -= pieces;
    other.pieces = CutValues(&column.pieces, pieces);
  }
  rest.lease = batch->lease;
  return rest;
}

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
