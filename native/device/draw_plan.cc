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
  if (!directory.padded()) return arrays;
  arrays.lengths_agree = directory.lengths_agree();
  for (const ItemColumn& column : directory.columns()) {
    if (arrays.lengths_agree && column.squeezed) continue;
    OutputSides& sides = arrays.sides.emplace_back();
    if (column.squeezed) continue;
    sides.lengths = place(tensor::DType::kInt32, by_draw);
    sides.mask = place(tensor::DType::kBool, {static_cast<int64_t>(n), column.steps});
    arrays.column_bytes += sides.mask->bytes;
    if (arrays.lengths_agree) break;
  }
  return arrays;
}

absl::StatusOr<std::unique_ptr<DrawPlan>> DrawPlan::Create(const SlotDirectory& directory,
                                                           uint32_t n, const Casts& casts,
                                                           bool weights, Stream stream,
                                                           Choice choice) {
  const uint64_t pieces = uint64_t{n} * directory.view().pieces_per_slot;
  if (pieces > std::numeric_limits<uint32_t>::max()) {
    return base::InvalidArgument("A batch of ", n, " items has ", pieces,
                                 " pieces, which is too many.");
  }
  std::unique_ptr<DrawPlan> plan(
      new DrawPlan(directory, n, ArraysOf(directory, n, casts, weights), choice));
  GR_RETURN_IF_ERROR(plan->Fill(casts, stream));
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

std::vector<PickedSide> DrawPlan::AddRows(const Casts& casts, GatherPlan* rows) const {
  const uint32_t per_column = directory_.view().pieces_per_column;
  std::vector<PickedSide> picked;
  std::vector<const OutputSides*> sides;
  for (size_t i = 0, side = 0; i < arrays_.columns.size(); ++i) {
    const ItemColumn& column = directory_.columns()[i];
    const bool has_side =
        side < arrays_.sides.size() && !(arrays_.lengths_agree && column.squeezed);
    const OutputSides* const of_column = has_side ? &arrays_.sides[side++] : nullptr;
    if (column.bytes() == 0) continue;
    sides.push_back(of_column);
    picked.push_back({column.step_bytes});
    const RowKind kind = CastOf(column.dtype, casts).kind;
    const uint64_t bytes_out = column.bytes() / SourceBytes(kind) * OutputBytes(kind);
    for (uint32_t draw = 0; draw < size_; ++draw) {
      rows->AddRow(kind, arrays_.columns[i].offset + draw * bytes_out, 0, column.bytes());
      for (uint32_t piece = 0; piece < per_column; ++piece) rows->AddPiece(nullptr, 0);
    }
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i] == nullptr || !sides[i]->mask.has_value()) continue;
    const OutputArray& mask = *sides[i]->mask;
    picked[i].wanted = 1;
    picked[i].lengths = sides[i]->lengths->offset;
    picked[i].mask_rows = rows->rows().size();
    const auto steps = static_cast<uint64_t>(mask.shape[1]);
    for (uint32_t draw = 0; draw < size_; ++draw) {
      rows->AddMask(mask.offset + draw * steps, 0, steps, 0);
    }
  }
  return picked;
}

// The rows are the same for every batch, but for their pieces and bytes, which a draw picks.
absl::Status DrawPlan::Fill(const Casts& casts, Stream stream) {
  GatherPlan rows;
  const std::vector<PickedSide> sides = AddRows(casts, &rows);
  list_ = rows.list();
  const auto padded = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  const size_t rows_bytes = padded(list_.row_count * sizeof(Row));
  const size_t pieces_bytes = padded(rows.pieces().size() * sizeof(RowPiece));
  const size_t sides_bytes = padded(sides.size() * sizeof(PickedSide));
  const absl::Span<const uint32_t> index = rows.row_of_tile();
  const size_t index_bytes = padded(index.size() * sizeof(uint32_t));
  SelectBackend& memory = *directory_.backend().select();
  GR_ASSIGN_OR_RETURN(void* const allocated,
                      memory.Allocate(rows_bytes + pieces_bytes + sides_bytes + index_bytes +
                                      size_ * sizeof(uint32_t)));
  memory_ = static_cast<std::byte*>(allocated);
  rows_ = reinterpret_cast<Row*>(memory_);
  pieces_ = reinterpret_cast<RowPiece*>(memory_ + rows_bytes);
  std::byte* const at_sides = memory_ + rows_bytes + pieces_bytes;
  std::byte* const at_index = at_sides + sides_bytes;
  slots_ = reinterpret_cast<uint32_t*>(at_index + index_bytes);
  const auto upload = [&](std::byte* to, const auto& from) {
    return memory.Copy(to, from.data(), from.size() * sizeof(from[0]), stream);
  };
  if (list_.row_count > 0) {
    GR_RETURN_IF_ERROR(upload(memory_, rows.rows()));
    if (directory_.padded()) {
      sides_ = reinterpret_cast<PickedSide*>(at_sides);
      GR_RETURN_IF_ERROR(upload(at_sides, sides));
    }
    if (!index.empty()) GR_RETURN_IF_ERROR(upload(at_index, index));
    GR_RETURN_IF_ERROR(memory.Synchronize(stream));
  }
  list_.row_of_tile = index.empty() ? nullptr : reinterpret_cast<const uint32_t*>(at_index);
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
  picked.sides = sides_;
  picked.output = output;
  DrawBackend& backend = directory_.backend();
  GR_RETURN_IF_ERROR(backend.Pick(directory_.view(), picked, stream));
  const DirectoryView& view = directory_.view();
  const uint32_t columns = view.pieces_per_slot / view.pieces_per_column;  // That have bytes.
  const uint64_t mean_bytes = directory_.mean_item_bytes() / std::max(columns, 1u);
  return backend.Gather(list_, {mean_bytes, directory_.mostly_there()}, output, stream);
}

}  // namespace gear_reverb::device
