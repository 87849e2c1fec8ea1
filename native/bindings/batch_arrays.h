// Gathered batches as NumPy arrays.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "native/client/batch_collector.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// What a batch has besides its columns, by item, gathered in one small buffer.
class BatchSides {
 public:
  // Needs no GIL. `side_gathers` makes weights where the batch is, or takes them there, and may be
  // null for a batch without a device. Without `describe`, only the items' info (and weights).
  static absl::StatusOr<BatchSides> Create(const client::Batch& batch, batch::BufferPool& buffers,
                                           std::optional<double> beta,
                                           device::GatherStream* side_gathers,
                                           bool describe = true);

  // (info, lengths, mask, cu_seqlens, weights), as BatchSampler.Next has them. What the device has
  // drawn it has the info of, but for the table's size; times_sampled is None.
  pybind11::tuple ToPython() const;

 private:
  enum Kind { kKey, kProbability, kTableSize, kPriority, kTimesSampled, kWeight };
  struct Array {
    tensor::DType dtype;
    tensor::Shape shape;
    size_t offset;
  };
  // Of all columns, if they agree (one entry), or by column (no entry where it is squeezed).
  struct OfColumn {
    std::optional<Array> lengths, mask, cu_seqlens;
  };

  Array Reserve(tensor::DType dtype, tensor::Shape shape);
  template <typename T>
  T* At(const Array& array) const {
    return reinterpret_cast<T*>(buffer_.get() + array.offset);
  }
  void ReserveFor(const batch::DrawnColumn& column, const batch::BatchLayout& layout, size_t index);
  void Fill(const batch::DrawnColumn& column, const OfColumn& arrays) const;
  // Of a batch without a device: lengths and what goes with them, in this buffer.
  std::vector<size_t> ReserveForColumns(const client::Batch& batch);
  absl::Status SendWeights(device::GatherStream& gathers);
  // Of a batch that the device has drawn: its table's size, and weights if wanted.
  absl::Status FillForDraws(batch::BufferPool& buffers, std::optional<double> beta,
                            device::GatherStream* side_gathers);

  size_t bytes_ = 0;
  std::vector<Array> info_;
  std::optional<Array> weights_;
  std::vector<OfColumn> columns_;
  bool agree_ = true;
  std::optional<client::OnDevice> on_device_;       // Has the columns' sides in its output,
  std::shared_ptr<device::Output> device_weights_;  // and the weights are here.
  std::shared_ptr<std::byte> buffer_;
};

// A list of the columns' arrays, which share ownership of the batch's buffer.
pybind11::list ColumnArrays(const client::Batch& batch);

}  // namespace gear_reverb::bindings
