// Statuses as Python exceptions, and Ctrl-C for waiting calls.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// Throws the Python exception for an error (the GIL is held). An interruption that left a Python
// exception behind (KeyboardInterrupt) throws that.
void ThrowIfError(const absl::Status& status);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// Lets other Python threads run. A thread that finds the interpreter shutting down when it comes
// back stays here for good: taking the GIL then would end it by unwinding its stack, which C++
// answers with an abort of the whole process.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* const state_;
};

// Calls `f` without the GIL and throws if it returns an error status.
template <typename F>
auto WithoutGil(F f) {
  auto result = [&] {
    ReleaseGil release;
    return f();
  }();
  if constexpr (std::is_same_v<decltype(result), absl::Status>) {
    ThrowIfError(result);
  } else {
    return ValueOrThrow(std::move(result));
  }
}

// Defines `set_errors` and installs the hook that lets Ctrl-C end waiting calls.
void DefineErrors(pybind11::module_& module);

}  // namespace gear_reverb::bindings
