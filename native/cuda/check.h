// Results of CUDA's calls as statuses. Every call's result is checked, a launch's too.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "native/base/log.h"
#include "native/base/status.h"

namespace gear_reverb::cuda {

// The error of `call`, by CUDA's name and words for it: RESOURCE_EXHAUSTED where memory ran out,
// FAILED_PRECONDITION where there is no device or driver, UNIMPLEMENTED where they have no such
// thing, else INTERNAL.
inline absl::Status ToStatus(cudaError_t error, absl::string_view call) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();  // It is reported here, and not once more by the next launch.
  const std::string text = absl::StrCat("CUDA: ", call, " failed: ", cudaGetErrorName(error), ": ",
                                        cudaGetErrorString(error), ".");
  switch (error) {
    case cudaErrorMemoryAllocation: return absl::ResourceExhaustedError(text);
    case cudaErrorNotSupported: return absl::UnimplementedError(text);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorInvalidDevice: return absl::FailedPreconditionError(text);
    default: return absl::InternalError(text);
  }
}

// Where nobody can be given the error, such as in a destructor: a warning tells the first one of
// each call, since a GPU that has failed refuses everything. CUDA's own end, with the process, is
// none.
inline void NoteIfCudaError(cudaError_t error, absl::string_view call) {
  if (error == cudaSuccess || error == cudaErrorCudartUnloading) return;
  base::WarnOnce(std::string(call), std::string(ToStatus(error, call).message()));
}

}  // namespace gear_reverb::cuda

// Returns from the enclosing function if a CUDA call failed.
#define GR_RETURN_IF_CUDA_ERROR(call) \
  GR_RETURN_IF_ERROR(::gear_reverb::cuda::ToStatus((call), #call))
