// NumPy arrays as tensors and back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "native/storage/trajectory.h"
#include "native/tensor/tensor_view.h"
#include "pybind11/numpy.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// A tensor borrowed from a Python object: keeps the object (or a converted copy) alive.
class BorrowedTensor {
 public:
  // Anything numpy.asarray takes. TypeError for dtypes that cannot be carried, naming `what`.
  BorrowedTensor(pybind11::handle object, const std::string& what);

  const tensor::TensorView& view() const { return view_; }

 private:
  pybind11::object owner_;
  std::string packed_;  // The text of string tensors.
  tensor::TensorView view_;
};

// The elements of a list of column values, None where a column has none.
class BorrowedStep {
 public:
  explicit BorrowedStep(const pybind11::sequence& values);

  const std::vector<std::optional<tensor::TensorView>>& optional_views() const { return views_; }
  // ValueError if one is None.
  std::vector<tensor::TensorView> views() const;

 private:
  std::vector<std::optional<BorrowedTensor>> tensors_;
  std::vector<std::optional<tensor::TensorView>> views_;
};

pybind11::dtype ToNumpy(tensor::DType dtype);

// New arrays. Strings become object arrays of bytes.
pybind11::array ToArray(const tensor::TensorView& tensor);
// All columns of a trajectory, gathered without the GIL.
pybind11::list ToArrays(const storage::Trajectory& trajectory);

void DefineArrays(pybind11::module_& module);

}  // namespace gear_reverb::bindings
