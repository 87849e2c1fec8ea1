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
  // Needs no GIL. Without `describe`, only the items' info.
  static absl::StatusOr<BatchSides> Create(const client::Batch& batch, batch::BufferPool& buffers,
                                           std::optional<double> beta, bool describe = true);

  // (info, lengths, mask, cu_seqlens, weights), as BatchSampler.Next has them.
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

  size_t bytes_ = 0;
  std::vector<Array> info_;
  std::optional<Array> weights_;
  std::vector<OfColumn> columns_;
  bool agree_ = true;
  std::shared_ptr<std::byte> buffer_;
};

// A list of the columns' arrays, which share ownership of the batch's buffer.
pybind11::list ColumnArrays(const client::Batch& batch);

}  // namespace gear_reverb::bindings
