#include "native/device/batch_plan.h"

#include <utility>

namespace gear_reverb::device {

using tensor::DType;

KindAndDType CastOf(DType dtype, const Casts& casts) {
  if (dtype == DType::kFloat32 && casts.float32 == DType::kBfloat16) {
    return {RowKind::kFloat32ToBfloat16, casts.float32};
  }
  if (dtype == DType::kFloat32 && casts.float32 == DType::kFloat16) {
    return {RowKind::kFloat32ToFloat16, casts.float32};
  }
  if (dtype == DType::kUint8 && casts.uint8 == DType::kFloat16) {
    return {RowKind::kUint8ToFloat16, casts.uint8};
  }
  return {RowKind::kCopy, dtype};
}

OutputArray PlaceArray(DType dtype, tensor::Shape shape, uint64_t* bytes) {
  constexpr uint64_t kAlignment = batch::BatchLayout::kColumnAlignment;
  OutputArray array{dtype, std::move(shape), *bytes, tensor::ByteSize(dtype)};
  for (const int64_t axis : array.shape) array.bytes *= axis;
  *bytes += (array.bytes + kAlignment - 1) / kAlignment * kAlignment;
  return array;
}

namespace {

class Planner {
 public:
  Planner(const batch::DrawnBatch& batch, const batch::BatchLayout& layout, const Casts& casts)
      : batch_(batch), layout_(layout), casts_(casts) {
    size_t rows = 0, pieces = 0;
    for (const batch::DrawnColumn& column : batch.columns) {
      if (column.dtype == DType::kString) continue;
      rows += 2 * column.lengths.size() + 2;
      pieces += column.pieces.size() + 2;
    }
    plan_.gather.Reserve(rows, pieces);
    // Never grows, since rows point into it.
    plan_.numbers = std::make_shared<std::vector<int32_t>>();
    plan_.numbers->reserve(batch.columns.size() * (2 * batch.size() + 1));
  }

  BatchPlan Plan() && {
    for (size_t i = 0; i < batch_.columns.size(); ++i) AddColumn(i);
    if (layout_.ragged != batch::Ragged::kError) AddAllSides();
    return std::move(plan_);
  }

 private:
  OutputArray Place(DType dtype, tensor::Shape shape) {
    return PlaceArray(dtype, std::move(shape), &plan_.output_bytes);
  }

  void AddColumn(size_t index) {
    const batch::DrawnColumn& drawn = batch_.columns[index];
    const batch::CollatedColumn& column = layout_.columns[index];
    const auto [kind, dtype] = CastOf(drawn.dtype, casts_);
    plan_.columns.push_back(Place(dtype, column.shape));
    const OutputArray& array = plan_.columns.back();
    if (array.bytes == 0) return;
    const bool packed = layout_.ragged == batch::Ragged::kPack && !drawn.squeezed;
    uint64_t destination = array.offset;
    size_t piece = 0;
    for (size_t item = 0; item < batch_.size(); ++item) {
      const uint64_t steps = packed ? drawn.lengths[item] : column.steps;
      const uint64_t bytes = steps * column.step_bytes;
      plan_.gather.AddRow(kind, destination, 0, bytes);
      for (; piece < drawn.piece_ends[item]; ++piece) {
        const batch::Piece& from = drawn.pieces[piece];
        if (from.bytes > 0) plan_.gather.AddPiece(from.data, from.bytes, from.block);
      }
      destination += bytes / SourceBytes(kind) * OutputBytes(kind);
    }
  }

  OutputArray AddNumbers(const std::vector<int32_t>& values) {
    const size_t first = plan_.numbers->size();
    plan_.numbers->insert(plan_.numbers->end(), values.begin(), values.end());
    OutputArray array = Place(DType::kInt32, {static_cast<int64_t>(values.size())});
    plan_.gather.AddRow(RowKind::kCopy, array.offset, 0, array.bytes);
    plan_.gather.AddPiece(reinterpret_cast<const std::byte*>(plan_.numbers->data() + first),
                          array.bytes);
    return array;
  }

  OutputSides SidesOf(const batch::DrawnColumn& column, int64_t steps) {
    OutputSides sides;
    if (column.squeezed) return sides;
    sides.lengths = AddNumbers(column.lengths);
    if (layout_.ragged == batch::Ragged::kPad) {
      sides.mask = Place(DType::kBool, {static_cast<int64_t>(batch_.size()), steps});
      uint64_t destination = sides.mask->offset;
      for (const int32_t length : column.lengths) {
        plan_.gather.AddMask(destination, 0, steps, length);
        destination += steps;
      }
    } else {
      std::vector<int32_t> ends{0};
      for (const int32_t length : column.lengths) ends.push_back(ends.back() + length);
      sides.cu_seqlens = AddNumbers(ends);
    }
    return sides;
  }

  void AddAllSides() {
    plan_.lengths_agree = batch::LengthsAgree(batch_);
    for (size_t i = 0; i < batch_.columns.size(); ++i) {
      if (plan_.lengths_agree && batch_.columns[i].squeezed) continue;
      plan_.sides.push_back(SidesOf(batch_.columns[i], layout_.columns[i].steps));
      if (plan_.lengths_agree) break;
    }
  }

  const batch::DrawnBatch& batch_;
  const batch::BatchLayout& layout_;
  const Casts& casts_;
  BatchPlan plan_;
};

}  // namespace

BatchPlan PlanBatch(const batch::DrawnBatch& batch, const batch::BatchLayout& layout,
                    const Casts& casts) {
  return Planner(batch, layout, casts).Plan();
}

}  // namespace gear_reverb::device
