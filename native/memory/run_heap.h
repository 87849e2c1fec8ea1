// The page level of the arena: runs of pages, cut from segments, merged when freed, and given back
// to the system when too many lie idle.
//
// Thread-safe. What lies idle is memory that was touched and is now in free runs. It is given back,
// largest runs first, when it exceeds what the recent peak of use says may be wanted again, within
// [kMinIdleBytes, kMaxIdleBytes]; so a steady turnover of blocks keeps its pages, and a heap that
// shrinks returns them. "Recent" is counted in bytes allocated, not in time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/memory/arena.h"
#include "native/memory/numa.h"
#include "native/memory/run_bins.h"
#include "native/memory/segment.h"

namespace gear_reverb::memory {

class RunHeap {
 public:
  static constexpr size_t kMinIdleBytes = size_t{32} << 20;
  static constexpr size_t kMaxIdleBytes = size_t{256} << 20;

  // `arena`: whose blocks lie in the runs.
  explicit RunHeap(const ArenaOptions& options, Arena* arena = nullptr);

  // A run of at least `pages` > 0 pages (more only if it has a segment of its own).
  // RESOURCE_EXHAUSTED when the system gives no memory.
  absl::StatusOr<PageRun*> Allocate(size_t pages);
  void Free(PageRun* run);

  struct Stats {
    size_t segments = 0;
    size_t reserved_bytes = 0;
    size_t idle_bytes = 0;
  };
  Stats stats() const;
  std::vector<SegmentView> segments() const;
  // See Arena. Waits for what is just being given back.
  void KeepMemory();
  void PreferNode(int node);
  // Changes when a segment goes.
  uint64_t segments_version() const { return segments_version_.load(std::memory_order_acquire); }

 private:
  // All but ReleaseIdle: with mutex_ held, and kept.
  absl::StatusOr<PageRun*> AddSegment(size_t pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertFree(PageRun* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFree(PageRun* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageRun* Merge(PageRun* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Split(PageRun* run, size_t pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAllocation(size_t pages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t IdleLimitPages() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives mutex_ up while the system works.
  void ReleaseIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Arena* const arena_;
  const size_t segment_pages_;
  const bool shareable_;

  mutable base::Mutex mutex_;
  base::CondVar released_;
  bool returns_memory_ ABSL_GUARDED_BY(mutex_);
  int node_ ABSL_GUARDED_BY(mutex_) = kAnyNode;  // Of memory, for segments to come.
  absl::flat_hash_map<uint32_t, std::unique_ptr<Segment>> segments_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> segments_version_{0};
  uint32_t next_segment_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t reserved_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  RunBins touched_runs_ ABSL_GUARDED_BY(mutex_);    // Free runs with a touched page,
  RunBins untouched_runs_ ABSL_GUARDED_BY(mutex_);  // and those without.
  size_t idle_pages_ ABSL_GUARDED_BY(mutex_) = 0;   // Touched pages of all free runs.
  bool releasing_ ABSL_GUARDED_BY(mutex_) = false;

  size_t used_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  // The peak of used_pages_ in this period and the one before. A period lasts until twice its peak
  // has been allocated.
  size_t period_allocated_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t period_peak_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t last_peak_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::memory
