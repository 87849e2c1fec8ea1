// Draws and their gathers on a GPU.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "native/cuda/gpu_device.h"
#include "native/device/draw_backend.h"

namespace gear_reverb::cuda {

absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewGpuDrawBackend(
    std::shared_ptr<GpuDevice> gpu, device::Stream stream);

}  // namespace gear_reverb::cuda
