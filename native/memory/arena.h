// The arena that holds all chunk bytes: memory in segments, blocks by size class.
//
// Thread-safe. Invariants:
//  1. A block starts at a multiple of kAlignment and never crosses a segment.
//  2. A segment's address and file descriptor stay valid while a block of it lives (blocks keep
//     the arena alive). Only a segment made for one oversized block goes before the arena does.
//  3. Allocation and freeing are O(1) amortised in the number of live blocks.
//  4. Metadata lie outside the segments: who maps one cannot harm the arena, only its bytes.
//
// What a block wastes is bounded; see size_classes.h. Memory is the system's until it is first
// touched, and goes back to it when much of it lies idle; see run_heap.h.
//
// Fork: the child of a process shares the parent's shareable segments. There, allocating from such
// an arena fails with FAILED_PRECONDITION and freeing does nothing, so that the parent's blocks
// stay as they are; reading them is fine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace gear_reverb::memory {

class Arena;

// Sole owner of a run of bytes in an arena; gives them back when destroyed. Movable, not copyable.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();

  std::byte* data() const { return data_; }
  // The bytes asked for; the block's capacity may be larger.
  size_t size() const { return size_; }
  absl::Span<const std::byte> span() const { return {data_, size_}; }
  absl::Span<std::byte> mutable_span() const { return {data_, size_}; }

  // Where the block lies, for handing it to another process or a device.
  uint32_t segment() const { return segment_; }
  uint64_t offset() const { return offset_; }

 private:
  friend class Arena;
  std::shared_ptr<Arena> arena_;  // Null for an empty block.
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t offset_ = 0;
  uint32_t segment_ = 0;
  void* home_ = nullptr;  // The Slab of a small block, the PageRun of a large one.
};

struct ArenaOptions {
  // Segments are at least this large (and 1 MiB); a block that is larger than this and fits no
  // segment gets one of its own size, which goes when the block does.
  size_t segment_bytes = size_t{64} << 20;
  // Limit on the capacity of live blocks; 0 means none.
  size_t max_bytes = 0;
  // memfd-backed segments can be shared with other processes; anonymous ones cannot.
  bool shareable = true;
  // Whether idle memory goes back to the system. Must be false where segments are registered with
  // a device (CUDA, a NIC), which would keep the old pages. All segments then stay with the arena.
  bool returns_memory = true;
};

struct ArenaStats {
  size_t reserved_bytes = 0;  // Address space of all segments.
  size_t used_bytes = 0;      // Capacity of live blocks.
  size_t payload_bytes = 0;   // Bytes asked for by live blocks.
  size_t live_blocks = 0;
  size_t segments = 0;
  size_t idle_bytes = 0;  // Memory kept for blocks to come, apart from partly used slabs.
};

// A segment as others may map it. `fd` is -1 for anonymous segments and stays the arena's. It is
// writable: give strangers one opened read-only through /proc/self/fd. Its size is sealed.
struct SegmentView {
  uint32_t id;
  int fd;
  std::byte* base;
  size_t bytes;
};

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static constexpr size_t kAlignment = 128;

  static std::shared_ptr<Arena> Create(const ArenaOptions& options);
  ~Arena();

  // Uninitialised bytes. RESOURCE_EXHAUSTED when over `max_bytes` or when the system has no
  // memory; nothing changes then. `size` 0 gives a block with no bytes.
  absl::StatusOr<Block> Allocate(size_t size);

  ArenaStats stats() const;
  std::vector<SegmentView> segments() const;

 private:
  friend class Block;
  class Impl;
  explicit Arena(const ArenaOptions& options);
  void Free(Block* block);

  std::unique_ptr<Impl> impl_;
};

// The process-wide arena for chunks that are on their way (writers, samplers): not shareable,
// unbounded, never destroyed.
const std::shared_ptr<Arena>& ProcessArena();

}  // namespace gear_reverb::memory
