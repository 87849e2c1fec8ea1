// The steps that a writer's items can refer to; see gear_reverb/_history.py.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "native/bindings/boxed.h"
#include "native/bindings/column_steps.h"
#include "native/bindings/definitions.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

// -------------------------------------------------------------------------------- the steps' log

// References of one step by column, as tuples: None where a column has no data.
struct StepLog {
  py::object column_type;  // A class derived from ColumnSteps: what slices of histories are.
  std::deque<py::object> rows;
  int64_t dropped = 0;
  int64_t capacity = 0;

  int64_t kept() const { return std::min<int64_t>(rows.size(), capacity); }
};

py::object AsTuple(py::handle sequence) {
  auto tuple = py::reinterpret_steal<py::object>(PySequence_Tuple(sequence.ptr()));
  if (!tuple) throw py::error_already_set();
  return tuple;
}

using LogBox = Boxed<StepLog>;

PyTypeObject* log_type = nullptr;

PyObject* LogAdd(PyObject* self, PyObject* row) {
  return AsSlot([&] {
    StepLog& log = LogBox::Of(self);
    log.rows.push_back(AsTuple(row));
    for (; static_cast<int64_t>(log.rows.size()) > log.capacity; ++log.dropped) {
      log.rows.pop_front();
    }
    return py::none().release().ptr();
  });
}

// Adds steps of which nothing is kept, and so nothing of those before them.
PyObject* LogSkip(PyObject* self, PyObject* count_object) {
  return AsSlot([&] {
    StepLog& log = LogBox::Of(self);
    const auto count = py::cast<int64_t>(py::handle(count_object));
    if (count > 0) {
      log.dropped += static_cast<int64_t>(log.rows.size()) + count;
      log.rows.clear();
    }
    return py::none().release().ptr();
  });
}

PyObject* LogClear(PyObject* self, PyObject*) {
  StepLog& log = LogBox::Of(self);
  log.rows.clear();
  log.dropped = 0;
  return py::none().release().ptr();
}

// Adds the references of a later part of the last step.
PyObject* LogMerge(PyObject* self, PyObject* row) {
  return AsSlot([&] {
    StepLog& log = LogBox::Of(self);
    const py::tuple part = AsTuple(row);
    const py::tuple last = log.rows.empty() ? py::tuple() : py::tuple(log.rows.back());
    if (last.size() != part.size()) throw py::value_error("The parts of a step differ in width.");
    py::tuple merged(part.size());
    for (size_t i = 0; i < part.size(); ++i) {
      merged[i] = py::object(part[i].is_none() ? last[i] : part[i]);
    }
    log.rows.back() = merged;
    return py::none().release().ptr();
  });
}

// Fills every step up with None.
PyObject* LogWiden(PyObject* self, PyObject* width_object) {
  return AsSlot([&] {
    const auto width = py::cast<size_t>(py::handle(width_object));
    for (py::object& row : LogBox::Of(self).rows) {
      const py::tuple narrow = row;
      py::tuple wide(std::max(width, narrow.size()));
      for (size_t i = 0; i < wide.size(); ++i) {
        wide[i] = i < narrow.size() ? py::object(narrow[i]) : py::object(py::none());
      }
      row = wide;
    }
    return py::none().release().ptr();
  });
}

// (step, column): the reference, None if the step is not kept. IndexError beyond the last step.
PyObject* LogGet(PyObject* self, PyObject* const* args, Py_ssize_t num_args) {
  return AsSlot([&] {
    CheckNumArguments("get", num_args, 2);
    const StepLog& log = LogBox::Of(self);
    const auto step = py::cast<int64_t>(py::handle(args[0]));
    const auto size = static_cast<int64_t>(log.rows.size());
    if (step >= log.dropped + size) throw py::index_error("The log has no such step.");
    if (step < log.dropped + size - log.kept()) return py::none().release().ptr();
    const py::tuple row = log.rows[step - log.dropped];
    return py::object(row[py::cast<size_t>(py::handle(args[1]))]).release().ptr();
  });
}

// Steps that are no longer kept count too.
Py_ssize_t LogLength(PyObject* self) {
  const StepLog& log = LogBox::Of(self);
  return static_cast<Py_ssize_t>(log.dropped + log.rows.size());
}

PyObject* LogFirstKept(PyObject* self, void*) {
  return PyLong_FromSsize_t(LogLength(self) - LogBox::Of(self).kept());
}

PyObject* LogCapacity(PyObject* self, void*) {
  return PyLong_FromLongLong(LogBox::Of(self).capacity);
}

int SetLogCapacity(PyObject* self, PyObject* value, void*) {
  const int64_t capacity = value == nullptr ? 0 : PyLong_AsLongLong(value);
  if (capacity == -1 && PyErr_Occurred() != nullptr) return -1;
  LogBox::Of(self).capacity = std::max<int64_t>(capacity, 0);
  return 0;
}

int InitLog(PyObject* self, PyObject* args, PyObject*) {
  PyObject* column_type = nullptr;
  if (PyArg_ParseTuple(args, "O!:StepLog", &PyType_Type, &column_type) == 0) return -1;
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(column_type), ColumnStepsType()) == 0) {
    PyErr_SetString(PyExc_TypeError, "column_type must be derived from ColumnSteps");
    return -1;
  }
  LogBox::Of(self).column_type = py::reinterpret_borrow<py::object>(column_type);
  return 0;
}

PyMethodDef log_methods[] = {{"add", LogAdd, METH_O, nullptr},
                             {"skip", LogSkip, METH_O, nullptr},
                             {"merge_into_last", LogMerge, METH_O, nullptr},
                             {"widen", LogWiden, METH_O, nullptr},
                             {"clear", LogClear, METH_NOARGS, nullptr},
                             {"get", AsMethod(LogGet), METH_FASTCALL, nullptr},
                             {nullptr, nullptr, 0, nullptr}};

PyGetSetDef log_getters[] = {{"first_kept", LogFirstKept, nullptr, nullptr, nullptr},
                             {"capacity", LogCapacity, SetLogCapacity, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot log_slots[] = {{Py_tp_new, reinterpret_cast<void*>(&LogBox::New)},
                           {Py_tp_init, reinterpret_cast<void*>(&InitLog)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(&LogBox::Delete)},
                           {Py_sq_length, reinterpret_cast<void*>(&LogLength)},
                           {Py_tp_methods, log_methods},
                           {Py_tp_getset, log_getters},
                           {0, nullptr}};

PyType_Spec log_spec = {"gear_reverb._native.StepLog", sizeof(LogBox), 0, Py_TPFLAGS_DEFAULT,
                        log_slots};

// --------------------------------------------------------------------------- a column of the log

// What ColumnHistory derives from: the common indices; `_getitem` of the derived class takes those
// that are left, and finds the error for those that are none.
struct ColumnView {
  py::object log;
  size_t column = 0;
};

using ViewBox = Boxed<ColumnView>;

int InitView(PyObject* self, PyObject* args, PyObject*) {
  PyObject* log = nullptr;
  Py_ssize_t column = 0;
  if (PyArg_ParseTuple(args, "O!n:ColumnView", log_type, &log, &column) == 0) return -1;
  ViewBox::Of(self) = {py::reinterpret_borrow<py::object>(log), static_cast<size_t>(column)};
  return 0;
}

// Whether `object` is a plain int of a few digits.
bool IsIndex(PyObject* object, int64_t* index) {
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  *index = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

// The kept steps that an index or a slice without step means, as a range of `rows`. False for
// anything unusual.
bool FindRows(const StepLog& log, PyObject* index, int64_t* begin, int64_t* end) {
  const auto size = static_cast<int64_t>(log.rows.size());
  int64_t start = 0;
  if (IsIndex(index, &start)) {
    *begin = start < 0 ? size + start : start - log.dropped;
    *end = *begin + 1;
    return *begin >= size - log.kept() && *begin < size;
  }
  if (!PySlice_Check(index)) return false;
  const auto* const slice = reinterpret_cast<PySliceObject*>(index);
  if (slice->step != Py_None || !IsIndex(slice->start, &start)) return false;
  if (start >= 0 || start < -log.kept()) return false;
  int64_t stop = 0;
  if (slice->stop != Py_None && (!IsIndex(slice->stop, &stop) || stop >= 0)) return false;
  *begin = size + start;
  *end = std::max(*begin, slice->stop == Py_None ? size : size + std::max(stop, start));
  return true;
}

PyObject* Subscript(PyObject* self, PyObject* index) {
  return AsSlot([&]() -> PyObject* {
    const ColumnView& view = ViewBox::Of(self);
    if (!view.log) throw py::value_error("The history has not been initialised.");
    const py::object owned_log = view.log;
    const StepLog& log = LogBox::Of(owned_log.ptr());
    // Of unusual indices, and of those in error, whose text the derived class knows.
    const auto otherwise = [&] {
      return py::handle(self).attr("_getitem")(py::handle(index)).release().ptr();
    };
    int64_t begin = 0, end = 0;
    if (!FindRows(log, index, &begin, &end)) return otherwise();
    const int64_t count = end - begin;
    auto references = py::reinterpret_steal<py::object>(PyTuple_New(count));
    if (!references) throw py::error_already_set();
    // Making it may have collected garbage, and so run code that has changed the log.
    if (!FindRows(log, index, &begin, &end) || end - begin != count) return otherwise();
    for (int64_t i = begin; i < end; ++i) {
      PyObject* const row = log.rows[i].ptr();
      PyObject* const reference = static_cast<Py_ssize_t>(view.column) < PyTuple_GET_SIZE(row)
                                      ? PyTuple_GET_ITEM(row, view.column)
                                      : Py_None;
      if (reference == Py_None) return otherwise();
      Py_INCREF(reference);
      PyTuple_SET_ITEM(references.ptr(), i - begin, reference);
    }
    auto* const type = reinterpret_cast<PyTypeObject*>(log.column_type.ptr());
    return MakeColumnSteps(type, {std::move(references), PySlice_Check(index) == 0});
  });
}

PyType_Slot view_slots[] = {{Py_tp_new, reinterpret_cast<void*>(&ViewBox::New)},
                            {Py_tp_init, reinterpret_cast<void*>(&InitView)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(&ViewBox::Delete)},
                            {Py_mp_subscript, reinterpret_cast<void*>(&Subscript)},
                            {0, nullptr}};

PyType_Spec view_spec = {"gear_reverb._native.ColumnView", sizeof(ViewBox), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, view_slots};

}  // namespace

void DefineHistory(py::module_& module) {
  log_type = AddType(module, &log_spec);
  AddType(module, &view_spec);
}

}  // namespace gear_reverb::bindings
