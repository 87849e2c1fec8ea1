// Launchers of the selection kernels: plain CUDA, without the rest of the package, so that they
// also compile alone. Arguments as of device::SelectBackend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "native/device/select_types.h"

namespace gear_reverb::cuda {

cudaError_t LaunchWrite(const device::SelectionView& view, const device::SlotState* states,
                        uint32_t n, const device::ClaimTable& claims, cudaStream_t stream);
cudaError_t LaunchResum(const device::SelectionView& view, const device::SlotState* states,
                        uint32_t n, bool members_changed, cudaStream_t stream);
cudaError_t LaunchDraw(const device::SelectionView& view, device::DrawState* state, uint32_t n,
                       double beta, const device::DrawOutput& output, cudaStream_t stream);
cudaError_t LaunchTop(const device::SelectionView& view, uint32_t k,
                      const device::DrawOutput& output, cudaStream_t stream);

}  // namespace gear_reverb::cuda
