// Bulk copies between memory and a block's, and the barriers that say when they have arrived: PTX's
// cp.async.bulk and mbarrier, of compute capability 9.0 on. By one thread.
#pragma once

#include "native/cuda/intrinsics.cuh"

#ifdef __CUDACC__

namespace gear_reverb::cuda {

// Of the launch.
__device__ inline std::byte* DynamicShared() {
  extern __shared__ __align__(128) std::byte dynamic_shared[];
  return dynamic_shared;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

template <typename T>
__device__ inline uint32_t SharedAddress(T* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier of one arrival a phase.
__device__ inline void InitBarrier(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier)) : "memory");
}
// All barriers that this thread has initialized may be used from now on.
__device__ inline void BarriersInitialized() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Begins a phase, which ends when so many bytes have arrived.
__device__ inline void ExpectBytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
// Waits for the end of a phase; phases are numbered 0, 1, 0, 1 ….
__device__ inline void WaitForPhase(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(SharedAddress(barrier)), "r"(parity)
        : "memory");
  }
}
// `to` in the block's memory, `from` not; all of it multiples of 16.
__device__ inline void CopyIn(std::byte* to, const std::byte* from, uint32_t bytes,
                              uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
}
// The other way round, in a group of its own.
__device__ inline void CopyOut(std::byte* to, const std::byte* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(SharedAddress(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// All that is on its way out has left the block's memory.
__device__ inline void WaitUntilRead() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// And has arrived.
__device__ inline void WaitUntilWritten() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif

}  // namespace gear_reverb::cuda

#else

namespace gear_reverb::cuda {
using emulation::CopyIn;
using emulation::CopyOut;
using emulation::DynamicShared;
using emulation::ExpectBytes;
using emulation::InitBarrier;
using emulation::WaitForPhase;
using emulation::WaitUntilRead;
using emulation::WaitUntilWritten;
inline void BarriersInitialized() {}
}  // namespace gear_reverb::cuda

#endif
