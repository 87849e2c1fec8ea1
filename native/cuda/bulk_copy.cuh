// A warp's pipeline of bulk copies: memory → shared memory → memory, with several pieces on their
// way. Of compute capability 9.0 on; before, segments go the lanes' way.
#pragma once

#include "native/cuda/async_copy.cuh"
#include "native/cuda/segment.cuh"

namespace gear_reverb::cuda {

constexpr uint32_t kBulkWarps = 4;
constexpr uint32_t kBulkThreads = 32 * kBulkWarps;
constexpr uint32_t kBulkSlots = 3;  // Of each warp.
constexpr uint32_t kBulkSlotBytes = device::kTileBytes;
constexpr uint32_t kBulkSharedBytes = kBulkWarps * kBulkSlots * kBulkSlotBytes;
// Below this a bulk copy is not worth its latency.
constexpr uint32_t kBulkFromBytes = 512;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// All calls by the whole warp. Lane 0 alone issues copies and waits for them.
//
// Copy n goes through slot n % kBulkSlots. Its way into the slot ends with a phase of the slot's
// barrier; its way out, which is issued when two later copies are on their way in, with a bulk
// group.
class BulkPipeline {
 public:
  __device__ explicit BulkPipeline(uint32_t lane) : lane_(lane) {
    __shared__ uint64_t barriers[kBulkWarps][kBulkSlots];
    const uint32_t warp = threadIdx.x / 32;
    barriers_ = barriers[warp];
    slots_ = DynamicShared() + warp * kBulkSlots * kBulkSlotBytes;
    if (lane_ == 0) {
      for (uint32_t i = 0; i < kBulkSlots; ++i) InitBarrier(barriers_ + i);
      BarriersInitialized();
    }
    __syncwarp();
  }

  // `bytes` <= kBulkSlotBytes.
  __device__ void CopySegment(Lanes<32> lanes, const std::byte* from, uint32_t bytes,
                              std::byte* to) {
    const uint32_t head = -static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to)) % kWord;
    const bool alike = (reinterpret_cast<uintptr_t>(from) + head) % kWord == 0;
    if (!alike || bytes < kBulkFromBytes) {
      return WriteSegment(lanes, RowKind::kCopy, from, bytes, to);
    }
    const uint32_t body = (bytes - head) / kWord * kWord;
    const uint32_t tail = head + body;
    if (lane_ < head) to[lane_] = from[lane_];
    if (lane_ < bytes - tail) to[tail + lane_] = from[tail + lane_];
    if (lane_ == 0) Issue(from + head, body, to + head);
    __syncwarp();
  }

  // Everything issued has arrived.
  __device__ void Finish() {
    if (lane_ == 0) {
      while (stored_ < issued_) Store();
      WaitUntilWritten();
    }
    __syncwarp();
  }

 private:
  __device__ void Issue(const std::byte* from, uint32_t bytes, std::byte* to) {
    // The slot's last copy has left it: it was put on its way a copy ago or more.
    WaitUntilRead();
    const uint32_t slot = issued_ % kBulkSlots;
    ExpectBytes(barriers_ + slot, bytes);
    CopyIn(slots_ + slot * kBulkSlotBytes, from, bytes, barriers_ + slot);
    // What the slot's copy is to become is kept by shifting, not by indexing, which would take it
    // out of registers.
    to_[0] = to_[1], bytes_[0] = bytes_[1];
    to_[1] = to_[2], bytes_[1] = bytes_[2];
    to_[2] = to, bytes_[2] = bytes;
    ++issued_;
    if (issued_ - stored_ == kBulkSlots) Store();
  }

  // Puts the oldest copy on its way out.
  __device__ void Store() {
    const uint32_t slot = stored_ % kBulkSlots;
    WaitForPhase(barriers_ + slot, stored_ / kBulkSlots % 2);
    const uint32_t waiting = issued_ - stored_;  // 1 to 3; the newest is in place 2.
    std::byte* const to = waiting == 3 ? to_[0] : waiting == 2 ? to_[1] : to_[2];
    const uint32_t bytes = waiting == 3 ? bytes_[0] : waiting == 2 ? bytes_[1] : bytes_[2];
    CopyOut(to, slots_ + slot * kBulkSlotBytes, bytes);
    ++stored_;
  }

  static_assert(kBulkSlots == 3, "to_ and bytes_ are shifted by hand.");
  const uint32_t lane_;
  uint64_t* barriers_;
  std::byte* slots_;
  uint32_t issued_ = 0, stored_ = 0;
  std::byte* to_[kBulkSlots] = {};
  uint32_t bytes_[kBulkSlots] = {};
};

#else

class BulkPipeline {
 public:
  __device__ explicit BulkPipeline(uint32_t) {}
  __device__ void CopySegment(Lanes<32> lanes, const std::byte* from, uint32_t bytes,
                              std::byte* to) {
    WriteSegment(lanes, RowKind::kCopy, from, bytes, to);
  }
  __device__ void Finish() {}
};

#endif

}  // namespace gear_reverb::cuda
