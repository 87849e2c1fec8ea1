#include "native/bindings/cell_refs.h"

#include <string>
#include <utility>

#include "native/bindings/arrays.h"
#include "native/bindings/boxed.h"
#include "native/bindings/errors.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using writer::CellRef;
using Box = Boxed<std::shared_ptr<CellRef>>;

PyTypeObject* cell_ref_type = nullptr;

// A getter or method without arguments.
template <auto f>
PyObject* Get(PyObject* self, void*) {
  return AsSlot([&] { return py::object(f(*Box::Of(self))).release().ptr(); });
}
template <auto f>
PyObject* Call(PyObject* self, PyObject*) {
  return Get<f>(self, nullptr);
}

py::object Expired(const CellRef& self) { return py::bool_(self.expired()); }

py::object Shape(const CellRef& self) {
  py::list shape;
  for (const int64_t axis : ValueOrThrow(self.shape())) shape.append(axis);
  return shape;
}

py::object Dtype(const CellRef& self) { return ToNumpy(ValueOrThrow(self.dtype())); }

py::object Numpy(const CellRef& self) { return ToArray(ValueOrThrow(self.Copy()).view()); }

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromString(Box::Of(self)->expired() ? "WeakCellRef(expired)" : "WeakCellRef");
}

PyGetSetDef getters[] = {{"expired", Get<Expired>, nullptr, nullptr, nullptr},
                         {"shape", Get<Shape>, nullptr, nullptr, nullptr},
                         {"dtype", Get<Dtype>, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {{"numpy", Call<Numpy>, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&Box::Delete)},
                       {Py_tp_repr, reinterpret_cast<void*>(&Repr)},
                       {Py_tp_getset, getters},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

// Made by writers only.
PyType_Spec spec = {"gear_reverb._native.WeakCellRef", sizeof(Box), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

py::object ToPython(std::shared_ptr<CellRef> cell) {
  return py::reinterpret_steal<py::object>(Box::Make(cell_ref_type, std::move(cell)));
}

py::tuple ToPython(writer::TrajectoryWriter::Cells cells) {
  py::tuple references(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    py::object reference = cells[i] == nullptr ? py::none() : ToPython(std::move(cells[i]));
    PyTuple_SET_ITEM(references.ptr(), i, reference.release().ptr());
  }
  return references;
}

const CellRef* CellOf(PyObject* object) {
  return Py_TYPE(object) == cell_ref_type ? Box::Of(object).get() : nullptr;
}

void DefineCellRefs(py::module_& module) { cell_ref_type = AddType(module, &spec); }

}  // namespace gear_reverb::bindings
