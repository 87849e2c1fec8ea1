// A segment: one mapping of memory, the runs that tile it, and which of its pages were touched.
//
// Thread-compatible: the run heap's mutex guards everything but Release and the constants. All
// metadata lie outside the mapping, since other processes may map it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/memory/arena.h"
#include "native/memory/numa.h"
#include "native/memory/size_classes.h"

namespace gear_reverb::memory {

class Segment;

// Consecutive pages of a segment that are allocated or free as one. The runs of a segment tile it;
// two free runs never touch.
struct PageRun final : BlockHome {
  explicit PageRun(Segment* segment = nullptr, size_t first_page = 0, size_t pages = 0)
      : segment(segment), first_page(first_page), pages(pages) {}

  // Of the one block that takes the whole run.
  void Free(std::byte* data, size_t size) override;
  uint32_t segment_id() const override;
  const std::byte* segment_base() const override;
  const Arena* arena() const override;
  size_t WriteFast(std::byte* data, absl::Span<const std::byte> bytes) override;

  Segment* segment;
  size_t first_page;
  size_t pages;
  bool free = false;
  size_t touched_pages = 0;     // Of a free run: pages that may hold memory of the system.
  bool fresh = false;           // Of an allocated run: no page was touched before.
  PageRun* previous = nullptr;  // In a list of free runs.
  PageRun* next = nullptr;

  std::byte* data() const;
  size_t bytes() const { return pages * kPageBytes; }
};

class Segment {
 public:
  // Maps `bytes` (rounded up to what the system maps), all untouched and in one run that is not
  // free, on a memory node if one is given. Costs no memory before it is touched.
  // RESOURCE_EXHAUSTED when the system refuses.
  static absl::StatusOr<std::unique_ptr<Segment>> Map(uint32_t id, size_t bytes, bool shareable,
                                                      int node = kAnyNode);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  uint32_t id() const { return id_; }
  // Whose blocks lie here; null while there are none.
  Arena* arena() const { return arena_; }
  void set_arena(Arena* arena) { arena_ = arena; }
  int fd() const { return fd_; }
  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  size_t pages() const { return bytes_ / kPageBytes; }

  // Gives the memory of these pages back to the system; they read as zeros afterwards. False, and
  // nothing changed, if the system refuses (pages locked by a device, for example).
  bool Release(size_t first_page, size_t pages);

  // Writes `bytes` at `offset` through the file, as far as the system takes them; how many it took.
  // 0 for an anonymous mapping.
  size_t WriteToFile(size_t offset, absl::Span<const std::byte> bytes);

  // The run that starts or ends at `page`; meaningless for a page inside a run.
  PageRun* run_at(size_t page) const { return boundaries_[page]; }
  // Enters `run` at its first and its last page.
  void SetBoundaries(PageRun* run);

  size_t CountTouched(size_t first_page, size_t pages) const;
  void MarkTouched(size_t first_page, size_t pages, bool touched);

 private:
  struct FreeDeleter {
    void operator()(void* memory) const;
  };

  Segment(uint32_t id, int fd, std::byte* base, size_t bytes);

  const uint32_t id_;
  const int fd_;  // -1 for an anonymous mapping.
  std::byte* const base_;
  const size_t bytes_;
  Arena* arena_ = nullptr;
  // From calloc, so that a fresh segment's metadata cost no memory either.
  std::unique_ptr<PageRun*[], FreeDeleter> boundaries_;
  std::unique_ptr<uint64_t[], FreeDeleter> touched_;  // A bit per page.
};

inline uint32_t PageRun::segment_id() const { return segment->id(); }
inline const Arena* PageRun::arena() const { return segment->arena(); }
inline const std::byte* PageRun::segment_base() const { return segment->base(); }
inline std::byte* PageRun::data() const { return segment->base() + first_page * kPageBytes; }

}  // namespace gear_reverb::memory
