// A device's state as Python values.
#pragma once

#include "native/device/device.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

inline pybind11::dict ToPython(const device::DeviceStats& stats) {
  namespace py = pybind11;
  const auto list = [](const std::vector<device::ClassChoice>& choices, const char* of) {
    py::list entries;
    for (const device::ClassChoice& choice : choices) {
      py::dict entry;
      entry["piece_bytes_below"] = choice.piece_bytes_below;
      entry["way"] = choice.way;
      entry["bytes_per_second"] = choice.bytes_per_second;
      entry[of] = choice.of_copy;
      entries.append(entry);
    }
    return entries;
  };
  py::list tiers;
  for (const device::TierStats& tier : stats.tiers) {
    py::dict entry;
    entry["table"] = tier.table;
    entry["limit_bytes"] = tier.limit_bytes;
    entry["allocated_bytes"] = tier.allocated_bytes;
    entry["resident_bytes"] = tier.resident_bytes;
    entry["waiting_bytes"] = tier.waiting_bytes;
    entry["overflow_bytes"] = tier.overflow_bytes;
    entry["failures"] = tier.failures;
    entry["last_error"] = tier.last_error;
    tiers.append(entry);
  }
  py::dict result;
  result["device"] = stats.name;
  result["link_bytes_per_second"] = stats.link_bytes_per_second;
  result["choices"] = list(stats.choices, "of_link");
  result["copy_bytes_per_second"] = stats.copy_bytes_per_second;
  result["device_choices"] = list(stats.device_choices, "of_copy");
  result["choices_error"] = stats.choices_error;
  result["batches"] = stats.batches;
  result["gathered_bytes"] = stats.gathered_bytes;
  result["staged_bytes"] = stats.staged_bytes;
  result["device_bytes"] = stats.device_bytes;
  result["tiers"] = tiers;
  result["registered_bytes"] = stats.registered_bytes;
  result["registered_limit_bytes"] = stats.registered_limit_bytes;
  result["registration_error"] = stats.registration_error;
  return result;
}

}  // namespace gear_reverb::bindings
