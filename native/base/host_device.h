// Marks functions that host and device code share: one source, one meaning on both sides.
#pragma once

#ifdef __CUDACC__
#define GR_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define GR_HOST_DEVICE inline
#endif
