// NumPy arrays as tensors and back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/container/inlined_vector.h"
#include "native/storage/trajectory.h"
#include "native/tensor/tensor_view.h"
#include "pybind11/numpy.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// A tensor borrowed from a Python object: keeps the object (or a converted copy) alive.
class BorrowedTensor {
 public:
  // Anything numpy.asarray takes. TypeError for dtypes that cannot be carried, naming the column.
  BorrowedTensor(pybind11::handle object, size_t column);
  BorrowedTensor(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(const BorrowedTensor&) = delete;

  const tensor::TensorView& view() const { return view_; }

 private:
  bool BorrowNumber(pybind11::handle object);
  void BorrowArray(pybind11::array array, size_t column);

  pybind11::object owner_;
  std::string packed_;  // The text of string tensors.
  union {               // The value of Python's numbers.
    double float_;
    int64_t int_;
    bool bool_;
  };
  tensor::TensorView view_;
};

// The elements of a list of column values, None where a column has none.
class BorrowedStep {
 public:
  using Views = absl::InlinedVector<std::optional<tensor::TensorView>, 2>;

  explicit BorrowedStep(const pybind11::sequence& values);

  const Views& optional_views() const { return views_; }
  // Of all values together.
  size_t bytes() const { return bytes_; }
  // ValueError if one is None.
  std::vector<tensor::TensorView> views() const;

 private:
  absl::FixedArray<std::optional<BorrowedTensor>, 4> tensors_;  // Never moved.
  Views views_;
  size_t bytes_ = 0;
};

pybind11::dtype ToNumpy(tensor::DType dtype);

// New arrays. Strings become object arrays of bytes.
pybind11::array ToArray(const tensor::TensorView& tensor);
// All columns of a trajectory, gathered without the GIL.
pybind11::list ToArrays(const storage::Trajectory& trajectory);

// An array over memory that `owner` keeps; it is writable.
pybind11::array BorrowingArray(tensor::DType dtype, const tensor::Shape& shape, void* data,
                               pybind11::handle owner);

void DefineArrays(pybind11::module_& module);

}  // namespace gear_reverb::bindings
