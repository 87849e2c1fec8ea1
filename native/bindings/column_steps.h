// What a column of an item refers to: the base of Python's TrajectoryColumn.
#pragma once

#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

struct ColumnSteps {
  pybind11::object references;  // A tuple; null before __init__.
  bool is_squeezed = false;
};

PyTypeObject* ColumnStepsType();
// A new object of `type`, which is derived from ColumnStepsType.
PyObject* MakeColumnSteps(PyTypeObject* type, ColumnSteps steps);
// Null unless `object` is of a type derived from ColumnStepsType, and initialised.
const ColumnSteps* ColumnStepsOf(PyObject* object);

void DefineColumnSteps(pybind11::module_& module);

}  // namespace gear_reverb::bindings
