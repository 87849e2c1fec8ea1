// Selection on a GPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "native/device/select_backend.h"

namespace gear_reverb::cuda {

// The backend on GPU `index`. Its calls may come from any thread and leave that thread's current
// GPU as it was. Errors of Availability, and INVALID_ARGUMENT for an index that there is not.
absl::StatusOr<std::shared_ptr<device::SelectBackend>> MakeSelectBackend(int index);

}  // namespace gear_reverb::cuda
