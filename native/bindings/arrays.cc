#include "native/bindings/arrays.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/bindings/errors.h"
#include "native/tensor/packed_strings.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using tensor::DType;

// NumPy's type numbers of the built-in types.
constexpr int kNumpyTypes = 24;
constexpr int kNumpyObject = 17, kNumpyBytes = 18, kNumpyUnicode = 19, kNumpyHalf = 23;

// By size, since int, long and long long differ in number but not always in size.
DType IntegerOfSize(bool is_signed, size_t bytes) {
  switch (bytes) {
    case 1: return is_signed ? DType::kInt8 : DType::kUint8;
    case 2: return is_signed ? DType::kInt16 : DType::kUint16;
    case 4: return is_signed ? DType::kInt32 : DType::kUint32;
    default: return is_signed ? DType::kInt64 : DType::kUint64;
  }
}

std::array<DType, kNumpyTypes> BuiltinTypes() {
  std::array<DType, kNumpyTypes> types;
  types.fill(DType::kInvalid);
  types[0] = DType::kBool;
  constexpr size_t sizes[] = {sizeof(char), sizeof(short), sizeof(int), sizeof(long),
                              sizeof(long long)};
  for (int i = 0; i < 5; ++i) {
    types[1 + 2 * i] = IntegerOfSize(true, sizes[i]);
    types[2 + 2 * i] = IntegerOfSize(false, sizes[i]);
  }
  types[11] = DType::kFloat32;
  types[12] = DType::kFloat64;
  types[14] = DType::kComplex64;
  types[15] = DType::kComplex128;
  types[kNumpyObject] = types[kNumpyBytes] = types[kNumpyUnicode] = DType::kString;
  types[kNumpyHalf] = DType::kFloat16;
  return types;
}

// The types that other packages register with NumPy (ml_dtypes), by their number.
absl::flat_hash_map<int, DType>& ExtraTypes() {
  static auto* const types = new absl::flat_hash_map<int, DType>;
  return *types;
}

// NumPy's dtypes by our type; never freed, since the interpreter may be gone at exit.
absl::flat_hash_map<DType, PyObject*>& NumpyTypes() {
  static auto* const types = new absl::flat_hash_map<DType, PyObject*>;
  return *types;
}

DType FromNumpy(int type_number) {
  static const std::array<DType, kNumpyTypes> builtin = BuiltinTypes();
  if (type_number >= 0 && type_number < kNumpyTypes) return builtin[type_number];
  const auto found = ExtraTypes().find(type_number);
  return found == ExtraTypes().end() ? DType::kInvalid : found->second;
}

[[noreturn]] void ThrowUnsupported(const std::string& what, py::handle dtype) {
  throw py::type_error(what + " has dtype " + std::string(py::str(dtype)) +
                       ", which cannot be carried.");
}

// The text of a str or bytes element; `keep` owns what the view points to.
absl::string_view TextOf(py::handle element, const std::string& what) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(element.ptr())) {
    PyBytes_AsStringAndSize(element.ptr(), &data, &size);
    return {data, static_cast<size_t>(size)};
  }
  if (PyUnicode_Check(element.ptr())) {
    const char* text = PyUnicode_AsUTF8AndSize(element.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
      throw py::value_error(what + " has text that is not valid Unicode (a lone surrogate).");
    }
    return {text, static_cast<size_t>(size)};
  }
  throw py::type_error(what + " is an object array with an element of type " +
                       std::string(py::str(py::type::of(element))) +
                       "; only str and bytes can be "
                       "carried.");
}

std::string PackText(const py::array& array, const std::string& what) {
  py::list elements(array.attr("ravel")().attr("tolist")());
  std::vector<absl::string_view> texts;
  texts.reserve(elements.size());
  for (py::handle element : elements) texts.push_back(TextOf(element, what));
  return tensor::PackStrings(texts);
}

}  // namespace

BorrowedTensor::BorrowedTensor(py::handle object, size_t column) {
  if (BorrowNumber(object)) return;
  const auto& numpy = py::detail::npy_api::get();
  if (Py_TYPE(object.ptr()) == numpy.PyArray_Type_) {
    BorrowArray(py::reinterpret_borrow<py::array>(object), column);
    return;
  }
  py::array array = py::reinterpret_steal<py::array>(
      numpy.PyArray_FromAny_(object.ptr(), nullptr, 0, 0, 0, nullptr));
  if (!array) throw py::error_already_set();
  BorrowArray(std::move(array), column);
}

// As numpy.asarray does; false for what is no plain bool, float, or int of 64 bits.
bool BorrowedTensor::BorrowNumber(py::handle object) {
  const auto borrow = [this](DType dtype, const void* value, size_t bytes) {
    view_.dtype = dtype;
    view_.data = {static_cast<const std::byte*>(value), bytes};
    return true;
  };
  if (PyFloat_CheckExact(object.ptr())) {
    float_ = PyFloat_AS_DOUBLE(object.ptr());
    return borrow(DType::kFloat64, &float_, sizeof(float_));
  }
  if (PyBool_Check(object.ptr())) {
    bool_ = object.ptr() == Py_True;
    return borrow(DType::kBool, &bool_, sizeof(bool_));
  }
  if (PyLong_CheckExact(object.ptr()) && sizeof(long) == sizeof(int_)) {
    int overflow = 0;
    int_ = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    return overflow == 0 && borrow(DType::kInt64, &int_, sizeof(int_));
  }
  return false;
}

void BorrowedTensor::BorrowArray(py::array array, size_t column) {
  const auto* const parts = py::detail::array_proxy(array.ptr());
  const auto dtype = py::reinterpret_borrow<py::dtype>(parts->descr);
  const auto what = [column] { return "Column " + std::to_string(column); };
  view_.dtype = FromNumpy(dtype.num());
  if (view_.dtype == DType::kInvalid) ThrowUnsupported(what(), dtype);
  view_.shape.assign(parts->dimensions, parts->dimensions + parts->nd);
  if (view_.dtype == DType::kString) {
    packed_ = PackText(array, what());
    view_.data = {reinterpret_cast<const std::byte*>(packed_.data()), packed_.size()};
    return;
  }
  if (dtype.byteorder() == '>') {
    array = array.attr("astype")(dtype.attr("newbyteorder")("="));
  }
  if (!(array.flags() & py::array::c_style)) {
    array = py::reinterpret_steal<py::array>(py::detail::npy_api::get().PyArray_FromAny_(
        array.ptr(), nullptr, 0, 0, py::array::c_style, nullptr));
    if (!array) throw py::error_already_set();
  }
  view_.data = {static_cast<const std::byte*>(array.data()), static_cast<size_t>(array.nbytes())};
  owner_ = std::move(array);
}

BorrowedStep::BorrowedStep(const py::sequence& values)
    : tensors_(values.size()), views_(tensors_.size()) {
  for (size_t i = 0; i < views_.size(); ++i) {
    const py::object value = values[i];
    if (value.is_none()) continue;
    views_[i] = tensors_[i].emplace(value, i).view();
    bytes_ += views_[i]->data.size();
  }
}

std::vector<tensor::TensorView> BorrowedStep::views() const {
  std::vector<tensor::TensorView> views;
  views.reserve(views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    if (!views_[i].has_value()) {
      throw py::value_error("Column " + std::to_string(i) + " must not be None.");
    }
    views.push_back(*views_[i]);
  }
  return views;
}

py::dtype ToNumpy(DType dtype) {
  auto& types = NumpyTypes();
  auto found = types.find(dtype);
  if (found == types.end()) {
    py::dtype made = dtype == DType::kString ? py::dtype("O") : py::dtype(tensor::Name(dtype));
    found = types.emplace(dtype, made.release().ptr()).first;
  }
  return py::reinterpret_borrow<py::dtype>(found->second);
}

namespace {

py::array NewArray(DType dtype, const tensor::Shape& shape) {
  return py::array(ToNumpy(dtype), std::vector<py::ssize_t>(shape.begin(), shape.end()));
}

py::array TextArray(const tensor::TensorView& tensor) {
  const int64_t count = *tensor::NumElements(tensor.shape);
  py::array array = NewArray(DType::kString, tensor.shape);
  auto** elements = static_cast<PyObject**>(array.mutable_data());
  int64_t i = 0;
  for (absl::string_view text : tensor::UnpackStrings(tensor.data, count, 0, count)) {
    PyObject* bytes = PyBytes_FromStringAndSize(text.data(), text.size());
    if (bytes == nullptr) throw py::error_already_set();
    Py_XDECREF(std::exchange(elements[i++], bytes));
  }
  return array;
}

}  // namespace

py::array ToArray(const tensor::TensorView& tensor) {
  if (tensor.dtype == DType::kString) return TextArray(tensor);
  py::array array = NewArray(tensor.dtype, tensor.shape);
  if (!tensor.data.empty()) {
    std::memcpy(array.mutable_data(), tensor.data.data(), tensor.data.size());
  }
  return array;
}

py::array BorrowingArray(DType dtype, const tensor::Shape& shape, void* data, py::handle owner) {
  return py::array(ToNumpy(dtype), std::vector<py::ssize_t>(shape.begin(), shape.end()), {}, data,
                   owner);
}

py::list ToArrays(const storage::Trajectory& trajectory) {
  // From this size on it is worth letting other Python threads run.
  constexpr int64_t kGatherWithoutGilFrom = 32 << 10;

  const size_t n = trajectory.columns.size();
  py::list arrays(n);
  std::vector<std::byte*> destinations(n, nullptr);
  int64_t bytes = 0;
  for (size_t i = 0; i < n; ++i) {
    const storage::ColumnLayout layout = storage::LayoutOf(trajectory.columns[i]);
    bytes += layout.bytes;
    if (layout.dtype == DType::kString) {
      std::string packed(layout.bytes, '\0');
      storage::Gather(trajectory.columns[i], reinterpret_cast<std::byte*>(packed.data()));
      arrays[i] = TextArray({layout.dtype,
                             layout.shape,
                             {reinterpret_cast<const std::byte*>(packed.data()), packed.size()}});
    } else {
      py::array array = NewArray(layout.dtype, layout.shape);
      destinations[i] = static_cast<std::byte*>(array.mutable_data());
      arrays[i] = std::move(array);
    }
  }
  const auto gather = [&] {
    for (size_t i = 0; i < n; ++i) {
      if (destinations[i] != nullptr) storage::Gather(trajectory.columns[i], destinations[i]);
    }
  };
  if (bytes < kGatherWithoutGilFrom) {
    gather();
  } else {
    ReleaseGil release;
    gather();
  }
  return arrays;
}

void DefineArrays(py::module_& module) {
  module.def(
      "set_extra_dtypes",
      [](const py::sequence& dtypes) {
        for (py::handle object : dtypes) {
          const auto dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(object));
          const DType known = tensor::FromName(py::cast<std::string>(dtype.attr("name")));
          if (known == DType::kInvalid) ThrowUnsupported("set_extra_dtypes", dtype);
          ExtraTypes()[dtype.num()] = known;
          NumpyTypes()[known] = py::object(dtype).release().ptr();
        }
      },
      py::arg("dtypes"), "Registers the dtypes of ml_dtypes, which NumPy itself lacks.");
}

}  // namespace gear_reverb::bindings
