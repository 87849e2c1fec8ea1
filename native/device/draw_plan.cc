#include "native/device/draw_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::device {

DrawnArrays DrawPlan::ArraysOf(const SlotDirectory& directory, uint32_t n, const Casts& casts,
                               bool weights) {
  DrawnArrays arrays;
  const auto place = [&](tensor::DType dtype, tensor::Shape shape) {
    return PlaceArray(dtype, std::move(shape), &arrays.output_bytes);
  };
  for (const ItemColumn& column : directory.columns()) {
    tensor::Shape shape{static_cast<int64_t>(n)};
    if (!column.squeezed) shape.push_back(column.steps);
    shape.insert(shape.end(), column.step_shape.begin(), column.step_shape.end());
    arrays.columns.push_back(place(CastOf(column.dtype, casts).dtype, std::move(shape)));
    arrays.column_bytes += arrays.columns.back().bytes;
  }
  const tensor::Shape by_draw{static_cast<int64_t>(n)};
  arrays.keys = place(tensor::DType::kUint64, by_draw);
  arrays.probabilities = place(tensor::DType::kFloat64, by_draw);
  arrays.priorities = place(tensor::DType::kFloat64, by_draw);
  if (weights) arrays.weights = place(tensor::DType::kFloat32, by_draw);
  return arrays;
}

absl::StatusOr<std::unique_ptr<DrawPlan>> DrawPlan::Create(const SlotDirectory& directory,
                                                           uint32_t n, const Casts& casts,
                                                           bool weights, Choice choice) {
  const uint64_t pieces = uint64_t{n} * directory.view().pieces_per_slot;
  if (pieces > std::numeric_limits<uint32_t>::max()) {
    return base::InvalidArgument("A batch of ", n, " items has ", pieces,
                                 " pieces, which is too many.");
  }
  std::unique_ptr<DrawPlan> plan(
      new DrawPlan(directory, n, ArraysOf(directory, n, casts, weights), choice));
  GR_RETURN_IF_ERROR(plan->Fill(casts));
  return plan;
}

DrawPlan::DrawPlan(const SlotDirectory& directory, uint32_t n, DrawnArrays arrays, Choice choice)
    : directory_(directory),
      size_(n),
      choice_(choice),
      version_(directory.version()),
      arrays_(std::move(arrays)) {}

DrawPlan::~DrawPlan() {
  if (memory_ != nullptr) directory_.backend().select()->Free(memory_);
}

// The rows are the same for every batch, but for the number of their pieces, which a draw picks.
absl::Status DrawPlan::Fill(const Casts& casts) {
  const uint32_t per_column = directory_.view().pieces_per_column;
  GatherPlan rows;
  for (size_t i = 0; i < arrays_.columns.size(); ++i) {
    const ItemColumn& column = directory_.columns()[i];
    if (column.bytes == 0) continue;
    const RowKind kind = CastOf(column.dtype, casts).kind;
    const uint64_t bytes_out = column.bytes / SourceBytes(kind) * OutputBytes(kind);
    for (uint32_t draw = 0; draw < size_; ++draw) {
      rows.AddRow(kind, arrays_.columns[i].offset + draw * bytes_out, 0, column.bytes);
      for (uint32_t piece = 0; piece < per_column; ++piece) {
        rows.AddPiece(nullptr, piece == 0 ? column.bytes : 0);
      }
    }
  }
  list_ = rows.list();
  const auto padded = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const size_t rows_bytes = padded(list_.row_count * sizeof(Row));
  const size_t pieces_bytes = padded(rows.pieces().size() * sizeof(RowPiece));
  SelectBackend& memory = *directory_.backend().select();
  GR_ASSIGN_OR_RETURN(void* const allocated,
                      memory.Allocate(rows_bytes + pieces_bytes + size_ * sizeof(uint32_t)));
  memory_ = static_cast<std::byte*>(allocated);
  rows_ = reinterpret_cast<Row*>(memory_);
  pieces_ = reinterpret_cast<RowPiece*>(memory_ + rows_bytes);
  slots_ = reinterpret_cast<uint32_t*>(memory_ + rows_bytes + pieces_bytes);
  if (list_.row_count > 0) {
    mean_piece_bytes_ = rows.source_bytes() / list_.row_count;
    // Not on the stream of any batch: waited for, once.
    GR_RETURN_IF_ERROR(
        memory.Copy(memory_, rows.rows().data(), list_.row_count * sizeof(Row), nullptr));
    GR_RETURN_IF_ERROR(memory.Synchronize(nullptr));
  }
  list_.rows = rows_;
  list_.pieces = pieces_;
  return absl::OkStatus();
}

absl::Status DrawPlan::Enqueue(Selection& selection, double beta, std::byte* output,
                               Stream stream) {
  DrawOutput drawn;
  drawn.slots = slots_;
  drawn.keys = reinterpret_cast<uint64_t*>(output + arrays_.keys.offset);
  drawn.probabilities = reinterpret_cast<double*>(output + arrays_.probabilities.offset);
  if (arrays_.weights.has_value()) {
    drawn.weights = reinterpret_cast<float*>(output + arrays_.weights->offset);
  }
  GR_RETURN_IF_ERROR(choice_ == Choice::kTopK ? selection.Top(size_, drawn, stream)
                                              : selection.Draw(size_, beta, drawn, stream));
  Picked picked;
  picked.slots = slots_;
  picked.count = size_;
  picked.rows = rows_;
  picked.pieces = pieces_;
  picked.priorities = reinterpret_cast<double*>(output + arrays_.priorities.offset);
  DrawBackend& backend = directory_.backend();
  GR_RETURN_IF_ERROR(backend.Pick(directory_.view(), picked, stream));
  return backend.Gather(list_, {mean_piece_bytes_, directory_.mostly_there()}, output, stream);
}

}  // namespace gear_reverb::device
