// The memory of a device that copies of chunks are kept in, and the way there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/kernels/gather.h"

namespace gear_reverb::device {

class PinnedSegments;

// Thread-safe but for Copy.
class TierMemory {
 public:
  virtual ~TierMemory() = default;
  // A large block, from a multiple of 256 on. RESOURCE_EXHAUSTED if the device has no memory.
  virtual absl::StatusOr<std::byte*> Allocate(uint64_t bytes) = 0;
  // No work of the device may use the block.
  virtual void Free(std::byte* data) = 0;
  // Copies from the process's memory to the device's, and returns when it is done. By one thread at
  // a time.
  virtual absl::Status Copy(absl::Span<const kernels::Copy> copies) = 0;
  // Memory that copies may come from and that the device reaches by itself for as long as it is
  // registered.
  virtual void UseSegments(std::weak_ptr<PinnedSegments>) {}
  // What a tier may have whose limit nobody has set.
  virtual uint64_t default_limit_bytes() const = 0;
};

// The twin's: memory of the process.
std::unique_ptr<TierMemory> NewCpuTierMemory();

}  // namespace gear_reverb::device
