// A device's state as Python values.
#pragma once

#include "native/device/device.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

inline pybind11::dict ToPython(const device::DeviceStats& stats) {
  namespace py = pybind11;
  py::list choices;
  for (const device::ClassChoice& choice : stats.choices) {
    py::dict entry;
    entry["piece_bytes_below"] = choice.piece_bytes_below;
    entry["way"] = choice.way;
    entry["bytes_per_second"] = choice.bytes_per_second;
    entry["of_link"] = choice.of_link;
    choices.append(entry);
  }
  py::dict result;
  result["device"] = stats.name;
  result["link_bytes_per_second"] = stats.link_bytes_per_second;
  result["choices"] = choices;
  result["choices_error"] = stats.choices_error;
  result["batches"] = stats.batches;
  result["gathered_bytes"] = stats.gathered_bytes;
  result["staged_bytes"] = stats.staged_bytes;
  result["registered_bytes"] = stats.registered_bytes;
  result["registered_limit_bytes"] = stats.registered_limit_bytes;
  result["registration_error"] = stats.registration_error;
  return result;
}

}  // namespace gear_reverb::bindings
