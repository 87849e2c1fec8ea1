// What batches on a device are asked for with, from Python.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/device/batch_plan.h"
#include "native/device/device.h"

namespace gear_reverb::bindings {

// "cpu", "cuda" or "cuda:N".
absl::StatusOr<std::shared_ptr<device::Device>> OpenDevice(const std::string& name);

// What columns of float32 and of uint8 become, by name; "" leaves them. Throws ValueError.
device::Casts CastsOf(const std::string& float32, const std::string& uint8);

// What becomes of items of different lengths, by name, and of padding its T. Throws ValueError.
struct RaggedPolicy {
  batch::Ragged ragged;
  int64_t pad_to = 0;
};
RaggedPolicy RaggedOf(const std::string& name, std::optional<int64_t> pad_to);

// In seconds from now; none: for ever. Throws ValueError.
absl::Time DeadlineInSeconds(std::optional<double> timeout);
// Throws ValueError unless it is finite and not negative.
void CheckBeta(std::optional<double> beta);

}  // namespace gear_reverb::bindings
