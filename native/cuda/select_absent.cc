#include "native/cuda/cuda.h"
#include "native/cuda/select_backend.h"

namespace gear_reverb::cuda {

absl::StatusOr<std::shared_ptr<device::SelectBackend>> MakeSelectBackend(int) {
  return Availability();
}

}  // namespace gear_reverb::cuda
