// Small blocks of one size class, cut from slabs.
//
// Thread-safe, with a mutex per class. Lock order: slab cache, then run heap. A slab without a live
// block goes back to the run heap, except one per class, so that a block that comes and goes at the
// edge of a slab does not take the slab with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/memory/run_heap.h"

namespace gear_reverb::memory {

struct Slab final : BlockHome {
  void Free(std::byte* data, size_t size) override;
  uint32_t segment_id() const override { return run->segment_id(); }
  const std::byte* segment_base() const override { return run->segment_base(); }
  const Arena* arena() const override { return run->arena(); }

  PageRun* run = nullptr;
  int size_class = 0;
  uint32_t free_blocks = 0;
  Slab* previous = nullptr;  // In the list of slabs with both live and free blocks.
  Slab* next = nullptr;
  std::array<uint64_t, kMaxBlocksPerSlab / 64> free_bits{};
};

struct SmallBlock {
  Slab* slab;
  size_t offset;  // From the start of the slab's run.
};

class SlabCache {
 public:
  SlabCache() = default;
  ~SlabCache();
  // Must be called once, before anything else. `heap` must outlive the cache.
  void Init(int size_class, RunHeap* heap);

  absl::StatusOr<SmallBlock> Allocate();
  void Free(SmallBlock block);

 private:
  absl::StatusOr<Slab*> NewSlab();
  void Link(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RunHeap* heap_ = nullptr;
  int size_class_ = 0;
  uint32_t block_bytes_ = 0;
  uint32_t blocks_per_slab_ = 0;

  base::Mutex mutex_;
  Slab* partial_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Slab* spare_ ABSL_GUARDED_BY(mutex_) = nullptr;  // The one slab without a live block, or null.
};

}  // namespace gear_reverb::memory
