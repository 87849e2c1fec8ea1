// Cells as Python's WeakCellRef.
#pragma once

#include <memory>

#include "native/writer/cell_ref.h"
#include "native/writer/trajectory_writer.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// A new reference. `cell` is not null.
pybind11::object ToPython(std::shared_ptr<writer::CellRef> cell);
// One per column, None where a step has no data in it.
pybind11::tuple ToPython(writer::TrajectoryWriter::Cells cells);
// Null unless `object` is a WeakCellRef; valid for as long as the object is.
const writer::CellRef* CellOf(PyObject* object);

void DefineCellRefs(pybind11::module_& module);

}  // namespace gear_reverb::bindings
