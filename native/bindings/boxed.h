// Python objects around C++ values without pybind11's registration of instances and dispatch of
// calls: for what is made or called once per step, where those cost more than the work.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

template <typename T>
struct Boxed {
  PyObject_HEAD T value;

  static T& Of(PyObject* self) { return reinterpret_cast<Boxed*>(self)->value; }

  // A new object of `type`, which is a Boxed<T>. Throws error_already_set without memory.
  static PyObject* Make(PyTypeObject* type, T value) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) throw pybind11::error_already_set();
    new (&Of(self)) T(std::move(value));
    return self;
  }

  // tp_new and tp_dealloc.
  static PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) new (&Of(self)) T();
    return self;
  }
  static void Delete(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    Of(self).~T();
    type->tp_free(self);
    Py_DECREF(type);
  }
};

// Calls `f` from a slot or method of C, which reports errors by `failed`.
template <typename F, typename R = std::invoke_result_t<F>>
R AsSlot(F f, R failed = R()) noexcept {
  try {
    return f();
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}

// TypeError unless a method of C has got so many arguments.
inline void CheckNumArguments(const char* method, Py_ssize_t got, Py_ssize_t expected) {
  if (got == expected) return;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd", method, expected, got);
  throw pybind11::error_already_set();
}

// For PyMethodDef. The cast goes over void* since the functions' types differ.
inline PyCFunction AsMethod(PyObject* (*fastcall)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fastcall));
}

// A new type, added to `module` under the last part of its name; the result is borrowed from the
// module, which lives as long as the process.
inline PyTypeObject* AddType(pybind11::module_& module, PyType_Spec* spec) {
  auto type = pybind11::reinterpret_steal<pybind11::object>(PyType_FromSpec(spec));
  if (!type) throw pybind11::error_already_set();
  module.attr(type.attr("__name__")) = type;
  return reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

}  // namespace gear_reverb::bindings
