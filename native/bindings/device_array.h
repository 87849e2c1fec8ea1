// Arrays of a device's memory: NumPy arrays for the CPU, for a GPU objects that hand their memory
// to frameworks by DLPack.
#pragma once

#include <memory>
#include <optional>

#include "native/device/batch_plan.h"
#include "native/device/device.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// `gpu`: where the output is; -1 for the CPU. Shares ownership of the output.
pybind11::object DeviceArrayOf(const std::shared_ptr<device::Output>& output,
                               const device::OutputArray& array, int gpu);

// An array on a GPU that is one of these; nothing if it is another object. It may be read while the
// output is kept.
struct LentArray {
  std::shared_ptr<device::Output> output;
  device::OutputArray array;
  int gpu;
};
std::optional<LentArray> LentDeviceArray(pybind11::handle object);

void DefineDeviceArray(pybind11::module_& module);

}  // namespace gear_reverb::bindings
