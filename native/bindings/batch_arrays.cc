#include "native/bindings/batch_arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "native/base/status.h"
#include "native/bindings/arrays.h"
#include "native/bindings/side_arrays.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using tensor::DType;

// A Python object that shares ownership of a buffer.
py::capsule Owner(std::shared_ptr<std::byte> buffer) {
  using Pointer = std::shared_ptr<std::byte>;
  return py::capsule(new Pointer(std::move(buffer)),
                     [](void* pointer) { delete static_cast<Pointer*>(pointer); });
}

// Elements of an object array are bytes; padding is b"".
py::array TextColumn(const batch::DrawnColumn& drawn, const batch::CollatedColumn& column,
                     bool padded) {
  py::array array(ToNumpy(DType::kString),
                  std::vector<py::ssize_t>(column.shape.begin(), column.shape.end()));
  auto** elements = static_cast<PyObject**>(array.mutable_data());
  const auto put = [&](const void* text, size_t bytes) {
    PyObject* const made = PyBytes_FromStringAndSize(static_cast<const char*>(text), bytes);
    if (made == nullptr) throw py::error_already_set();
    Py_XDECREF(std::exchange(*elements++, made));
  };
  size_t piece = 0;
  for (const uint32_t end : drawn.piece_ends) {
    int64_t room = column.steps * column.step_elements;
    for (; piece < end; ++piece, --room) put(drawn.pieces[piece].data, drawn.pieces[piece].bytes);
    for (; padded && room > 0; --room) put("", 0);
  }
  return array;
}

}  // namespace

BatchSides::Array BatchSides::Reserve(DType dtype, tensor::Shape shape) {
  size_t size = tensor::ByteSize(dtype);
  for (const int64_t axis : shape) size *= axis;
  Array array{dtype, std::move(shape), bytes_};
  constexpr size_t kAlignment = batch::BatchLayout::kColumnAlignment;
  bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  return array;
}

void BatchSides::ReserveFor(const batch::DrawnColumn& column, const batch::BatchLayout& layout,
                            size_t index) {
  OfColumn& arrays = columns_.emplace_back();
  if (column.squeezed) return;
  const auto size = static_cast<int64_t>(column.lengths.size());
  arrays.lengths = Reserve(DType::kInt32, {size});
  if (layout.ragged == batch::Ragged::kPad) {
    arrays.mask = Reserve(DType::kBool, {size, layout.columns[index].steps});
  } else {
    arrays.cu_seqlens = Reserve(DType::kInt32, {size + 1});
  }
}

void BatchSides::Fill(const batch::DrawnColumn& column, const OfColumn& arrays) const {
  if (column.squeezed) return;
  const size_t size = column.lengths.size();
  std::memcpy(At<int32_t>(*arrays.lengths), column.lengths.data(), size * sizeof(int32_t));
  if (arrays.mask.has_value()) {
    const int64_t steps = arrays.mask->shape[1];
    auto* row = At<uint8_t>(*arrays.mask);
    for (const int32_t length : column.lengths) {
      std::memset(row, 1, length);
      std::memset(row + length, 0, steps - length);
      row += steps;
    }
  } else {
    auto* const ends = At<int32_t>(*arrays.cu_seqlens);
    ends[0] = 0;
    for (size_t i = 0; i < size; ++i) ends[i + 1] = ends[i] + column.lengths[i];
  }
}

std::vector<size_t> BatchSides::ReserveForColumns(const client::Batch& batch) {
  std::vector<size_t> described;
  if (batch.layout.ragged == batch::Ragged::kError) return described;
  agree_ = batch::LengthsAgree(batch.drawn);
  for (size_t i = 0; i < batch.drawn.columns.size(); ++i) {
    if (agree_ && batch.drawn.columns[i].squeezed) continue;
    ReserveFor(batch.drawn.columns[i], batch.layout, i);
    described.push_back(i);
    if (agree_) break;
  }
  return described;
}

absl::Status BatchSides::SendWeights(device::GatherStream& gathers) {
  device::GatherPlan plan;
  const uint64_t bytes = weights_->shape[0] * sizeof(float);
  plan.AddRow(device::RowKind::kCopy, 0, 0, bytes);
  plan.AddPiece(At<std::byte>(*weights_), bytes);
  GR_ASSIGN_OR_RETURN(device_weights_, gathers.Gather(std::move(plan), bytes, buffer_));
  return absl::OkStatus();
}

absl::Status BatchSides::FillForDraws(batch::BufferPool& buffers, std::optional<double> beta,
                                      device::GatherStream* side_gathers) {
  const client::OnDevice::Draws& draws = *on_device_->draws;
  info_.push_back(Reserve(DType::kInt64, {draws.size}));
  GR_ASSIGN_OR_RETURN(buffer_, buffers.Allocate(bytes_));
  std::fill_n(At<int64_t>(info_[0]), draws.size, draws.table_size);
  if (!beta.has_value()) return absl::OkStatus();
  // After the draw, on a stream of its own, which may end before the draw's output does.
  weights_ = Array{DType::kFloat32, {draws.size}, 0};
  const device::Stream stream = side_gathers->stream();
  const std::shared_ptr<device::Output>& drawn = on_device_->output;
  GR_ASSIGN_OR_RETURN(
      device_weights_,
      side_gathers->Write(
          draws.size * sizeof(float), 0, /*lease=*/drawn, [&](std::byte* output) -> absl::Status {
            GR_RETURN_IF_ERROR(drawn->LendTo(stream));
            return draws.backend->Weights(
                reinterpret_cast<const double*>(drawn->data() + draws.probabilities.offset),
                static_cast<uint32_t>(draws.size), *beta, reinterpret_cast<float*>(output), stream);
          }));
  return absl::OkStatus();
}

absl::StatusOr<BatchSides> BatchSides::Create(const client::Batch& batch,
                                              batch::BufferPool& buffers,
                                              std::optional<double> beta,
                                              device::GatherStream* side_gathers, bool describe) {
  const batch::DrawnBatch& drawn = batch.drawn;
  const auto size = static_cast<int64_t>(drawn.size());
  BatchSides sides;
  if (batch.on_device.has_value() && batch.on_device->draws.has_value()) {
    sides.on_device_ = batch.on_device;
    GR_RETURN_IF_ERROR(sides.FillForDraws(buffers, beta, side_gathers));
    return sides;
  }
  sides.info_.reserve(5);
  for (const DType dtype :
       {DType::kUint64, DType::kFloat64, DType::kInt64, DType::kFloat64, DType::kInt32}) {
    sides.info_.push_back(sides.Reserve(dtype, {size}));
  }
  if (beta.has_value()) sides.weights_ = sides.Reserve(DType::kFloat32, {size});
  // The columns that lengths are given of.
  std::vector<size_t> described;
  if (batch.on_device.has_value()) {
    sides.on_device_ = batch.on_device;
  } else if (describe) {
    described = sides.ReserveForColumns(batch);
  }
  GR_ASSIGN_OR_RETURN(sides.buffer_, buffers.Allocate(sides.bytes_));
  const auto fill = [&](Kind kind, const auto& values) {
    std::memcpy(sides.At<std::byte>(sides.info_[kind]), values.data(),
                values.size() * sizeof(values[0]));
  };
  fill(kKey, drawn.keys);
  fill(kProbability, drawn.probabilities);
  fill(kTableSize, drawn.table_sizes);
  fill(kPriority, drawn.priorities);
  fill(kTimesSampled, drawn.times_sampled);
  if (beta.has_value()) {
    GR_RETURN_IF_ERROR(
        batch::ImportanceWeights(drawn, *beta, {sides.At<float>(*sides.weights_), drawn.size()}));
    if (side_gathers != nullptr) GR_RETURN_IF_ERROR(sides.SendWeights(*side_gathers));
  }
  for (size_t i = 0; i < described.size(); ++i) {
    sides.Fill(drawn.columns[described[i]], sides.columns_[i]);
  }
  return sides;
}

py::tuple BatchSides::ToPython() const {
  const py::capsule owner = Owner(buffer_);
  const auto array = [&](const std::optional<Array>& of) -> py::object {
    if (!of.has_value()) return py::none();
    return BorrowingArray(of->dtype, of->shape, At<std::byte>(*of), owner);
  };
  const auto device_array = [&](const std::optional<device::OutputArray>& of) -> py::object {
    if (!of.has_value()) return py::none();
    return DeviceArrayOf(on_device_->output, *of, on_device_->gpu);
  };
  py::tuple info(5);
  if (on_device_.has_value() && on_device_->draws.has_value()) {
    const client::OnDevice::Draws& draws = *on_device_->draws;
    info[kKey] = device_array(draws.keys);
    info[kProbability] = device_array(draws.probabilities);
    info[kTableSize] = array(info_[0]);
    info[kPriority] = device_array(draws.priorities);
    info[kTimesSampled] = py::none();
  } else {
    for (size_t i = 0; i < info_.size(); ++i) info[i] = array(info_[i]);
  }
  if (!on_device_.has_value()) {
    const auto of = [&](auto member) { return SideArray(columns_, agree_, member, array); };
    return py::make_tuple(info, of(&OfColumn::lengths), of(&OfColumn::mask),
                          of(&OfColumn::cu_seqlens), array(weights_));
  }
  const py::tuple sides = DeviceSideArrays(on_device_->output, on_device_->sides,
                                           on_device_->lengths_agree, on_device_->gpu);
  py::object weights =
      device_weights_ == nullptr
          ? array(weights_)
          : DeviceArrayOf(device_weights_, {weights_->dtype, weights_->shape, 0, 0},
                          on_device_->gpu);
  return py::make_tuple(info, sides[0], sides[1], sides[2], weights);
}

py::list ColumnArrays(const client::Batch& batch) {
  const batch::BatchLayout& layout = batch.layout;
  py::list arrays(layout.columns.size());
  py::object owner = batch.buffer == nullptr ? py::object(py::none()) : Owner(batch.buffer);
  for (size_t i = 0; i < layout.columns.size(); ++i) {
    const batch::CollatedColumn& column = layout.columns[i];
    if (column.dtype == DType::kString) {
      const bool padded = layout.ragged == batch::Ragged::kPad;
      arrays[i] = TextColumn(batch.drawn.columns[i], column, padded);
    } else if (batch.on_device.has_value()) {
      const client::OnDevice& made = *batch.on_device;
      arrays[i] = DeviceArrayOf(made.output, made.columns[i], made.gpu);
    } else if (column.bytes == 0) {
      arrays[i] = py::array(ToNumpy(column.dtype),
                            std::vector<py::ssize_t>(column.shape.begin(), column.shape.end()));
    } else {
      arrays[i] =
          BorrowingArray(column.dtype, column.shape, batch.buffer.get() + column.offset, owner);
    }
  }
  return arrays;
}

}  // namespace gear_reverb::bindings
