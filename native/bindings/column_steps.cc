#include "native/bindings/column_steps.h"

#include <utility>

#include "native/bindings/boxed.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

using StepsBox = Boxed<ColumnSteps>;

PyTypeObject* column_steps_type = nullptr;

int InitColumnSteps(PyObject* self, PyObject* args, PyObject* kwargs) {
  return AsSlot(
      [&] {
        PyObject* references = nullptr;
        int squeeze = 0;
        if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) {
          throw py::type_error("ColumnSteps takes no keyword arguments");
        }
        if (PyArg_ParseTuple(args, "O!p:ColumnSteps", &PyTuple_Type, &references, &squeeze) == 0) {
          throw py::error_already_set();
        }
        StepsBox::Of(self) = {py::reinterpret_borrow<py::object>(references), squeeze != 0};
        return 0;
      },
      -1);
}

PyObject* GetReferences(PyObject* self, void*) {
  const py::object& references = StepsBox::Of(self).references;
  if (!references) {
    PyErr_SetString(PyExc_AttributeError, "_references");
    return nullptr;
  }
  return references.inc_ref().ptr();
}

PyObject* GetSqueezed(PyObject* self, void*) {
  return PyBool_FromLong(StepsBox::Of(self).is_squeezed);
}

int SetSqueezed(PyObject* self, PyObject* value, void*) {
  const int truth = value == nullptr ? 0 : PyObject_IsTrue(value);
  if (truth >= 0) StepsBox::Of(self).is_squeezed = truth != 0;
  return truth < 0 ? -1 : 0;
}

PyGetSetDef column_steps_getters[] = {{"_references", GetReferences, nullptr, "A tuple.", nullptr},
                                      {"is_squeezed", GetSqueezed, SetSqueezed, nullptr, nullptr},
                                      {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot column_steps_slots[] = {{Py_tp_new, reinterpret_cast<void*>(&StepsBox::New)},
                                    {Py_tp_init, reinterpret_cast<void*>(&InitColumnSteps)},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(&StepsBox::Delete)},
                                    {Py_tp_getset, column_steps_getters},
                                    {0, nullptr}};

PyType_Spec column_steps_spec = {"gear_reverb._native.ColumnSteps", sizeof(StepsBox), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, column_steps_slots};

}  // namespace

PyTypeObject* ColumnStepsType() { return column_steps_type; }

PyObject* MakeColumnSteps(PyTypeObject* type, ColumnSteps steps) {
  return StepsBox::Make(type, std::move(steps));
}

const ColumnSteps* ColumnStepsOf(PyObject* object) {
  if (PyObject_TypeCheck(object, column_steps_type) == 0) return nullptr;
  const ColumnSteps& steps = StepsBox::Of(object);
  return steps.references ? &steps : nullptr;
}

void DefineColumnSteps(py::module_& module) {
  column_steps_type = AddType(module, &column_steps_spec);
}

}  // namespace gear_reverb::bindings
