#include "native/bindings/errors.h"

#include <cxxabi.h>
#include <unistd.h>

#include <string>

#include "native/base/interrupt.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

// Owned references that live as long as the process.
PyObject* reverb_error = nullptr;
PyObject* deadline_exceeded_error = nullptr;

bool Finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// The one that runs Python's signal handlers, and that shuts the interpreter down.
bool OnMainThread() { return gettid() == getpid(); }

// Whether a Python signal handler raised.
bool PythonInterrupted() {
  if (!OnMainThread()) return Finalizing();
  if (!Py_IsInitialized()) return true;
  py::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

PyObject* ExceptionFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument: return PyExc_ValueError;
    case absl::StatusCode::kResourceExhausted: return PyExc_IndexError;
    case absl::StatusCode::kUnimplemented: return PyExc_NotImplementedError;
    case absl::StatusCode::kDeadlineExceeded:
      return deadline_exceeded_error != nullptr ? deadline_exceeded_error : PyExc_TimeoutError;
    default: return reverb_error != nullptr ? reverb_error : PyExc_RuntimeError;
  }
}

}  // namespace

ReleaseGil::~ReleaseGil() {
  while (Finalizing() && !OnMainThread()) pause();
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {  // The shutdown began meanwhile.
    while (true) pause();
  }
}

void ThrowIfError(const absl::Status& status) {
  // A signal's handler may have raised while a call waited that then came to its end all the same.
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (status.ok()) return;
  PyErr_SetString(ExceptionFor(status.code()), std::string(status.message()).c_str());
  throw py::error_already_set();
}

void DefineErrors(py::module_& module) {
  base::interrupt_hook.store(PythonInterrupted);
  module.def(
      "set_errors",
      [](py::type error, py::type deadline_exceeded) {
        reverb_error = error.release().ptr();
        deadline_exceeded_error = deadline_exceeded.release().ptr();
      },
      py::arg("reverb_error"), py::arg("deadline_exceeded_error"),
      "Sets the exception types for errors that have no built-in Python type.");
}

}  // namespace gear_reverb::bindings
