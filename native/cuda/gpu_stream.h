// Gathers on a GPU: one CUDA stream, the memory it writes, and what it has under way.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "native/cuda/gpu_device.h"
#include "native/device/device.h"

namespace gear_reverb::cuda {

absl::StatusOr<std::unique_ptr<device::GatherStream>> NewGpuStream(std::shared_ptr<GpuDevice> gpu,
                                                                   size_t kept);

}  // namespace gear_reverb::cuda
