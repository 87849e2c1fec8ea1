// Where a selection's memory lies and its loops run: in host memory on the CPU (the twin: the
// reference and the fallback) or on a GPU. Both do the same operations in the same order, so the
// same calls leave the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/device/select_types.h"

namespace gear_reverb::device {

using Stream = void*;  // A cudaStream_t; null for the default one. The twin has no streams.

// Thread-safe, as far as calls touch different memory. Everything with a stream may return before
// it is done, and is done in the stream's order. All pointers but those of Copy are to memory of
// the backend. Counts are positive; arguments are the caller's to check.
class SelectBackend {
 public:
  virtual ~SelectBackend() = default;

  // Aligned to 256 bytes. RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  // Waits for what uses the memory.
  virtual void Free(void* memory) = 0;
  virtual absl::Status Fill(void* memory, int byte, size_t bytes, Stream stream) = 0;
  // From or to host memory, or within the backend's. Host memory that is not pinned has been read
  // or written on return.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual absl::Status Synchronize(Stream stream) = 0;

  // Sets the leaves (and keys) of the slots of `states`, of several for one slot by the last one.
  // `claims` has at least twice as many places as there are states, all free.
  virtual absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                             const ClaimTable& claims, Stream stream) = 0;
  // Recomputes the nodes above the slots of `states`, or all if it is null. Those of the counts
  // only if `members_changed`.
  virtual absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                             bool members_changed, Stream stream) = 0;
  // `n` draws with replacement among the items, of which there is one at least, with importance
  // weights for `beta`; advances `state`.
  virtual absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                            const DrawOutput& output, Stream stream) = 0;
  // The first `k` of an order, in order; k <= kMaxTop and there are as many items.
  virtual absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                           Stream stream) = 0;
};

std::shared_ptr<SelectBackend> MakeSelectTwin();

}  // namespace gear_reverb::device
