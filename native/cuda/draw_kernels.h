// Launchers of what draws need besides selection and the gather. Arguments as of
// device::DrawBackend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "native/device/slot_entries.h"

namespace gear_reverb::cuda {

cudaError_t LaunchWriteEntries(const device::DirectoryView& directory,
                               const device::EntryChanges& changes, cudaStream_t stream);
cudaError_t LaunchPick(const device::DirectoryView& directory, const device::Picked& picked,
                       cudaStream_t stream);
cudaError_t LaunchWeights(const double* probabilities, uint32_t n, double beta, float* weights,
                          cudaStream_t stream);

}  // namespace gear_reverb::cuda
