// A GPU's memory for copies of chunks.
#pragma once

#include <memory>

#include "native/cuda/gpu_device.h"
#include "native/device/tier_memory.h"

namespace gear_reverb::cuda {

// The first use of it makes a stream of its own.
std::unique_ptr<device::TierMemory> NewGpuTierMemory(std::shared_ptr<GpuDevice> gpu);

}  // namespace gear_reverb::cuda
