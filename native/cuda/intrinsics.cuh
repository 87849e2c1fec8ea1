// What kernels need of the compiler and the GPU that C++ does not have. Where a file is not
// compiled by nvcc, the GPU is emulated: so kernels run, and are tested, on the CPU too.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

namespace gear_reverb::cuda {

// Two numbers, each rounded to the nearest, ties to even; every NaN becomes 0x7fff.
__device__ inline uint32_t PackBfloat16(uint32_t low, uint32_t high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
      : "=r"(packed)
      : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
  return packed;
}
__device__ inline uint32_t PackFloat16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace gear_reverb::cuda

#else

#include <emulated_kernel_language.h>

#include "native/device/casts.h"

namespace gear_reverb::cuda {

inline uint32_t PackBfloat16(uint32_t low, uint32_t high) {
  return device::ToBfloat16(__uint_as_float(low)) |
         static_cast<uint32_t>(device::ToBfloat16(__uint_as_float(high))) << 16;
}
inline uint32_t PackFloat16(float low, float high) {
  return device::ToFloat16(low) | static_cast<uint32_t>(device::ToFloat16(high)) << 16;
}

}  // namespace gear_reverb::cuda

#endif
