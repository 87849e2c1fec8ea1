// The arena that holds all chunk bytes: memory in segments, blocks by size class.
//
// Thread-safe. Invariants:
//  1. A block starts at a multiple of kAlignment, or of kSmallAlignment if it is smaller than the
//     former, and never crosses a segment.
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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace gear_reverb::memory {

class Arena;

// Where blocks come from and go back to.
class BlockHome {
 public:
  // Takes a block's bytes back.
  virtual void Free(std::byte* data, size_t size) = 0;
  // The segment that a block lies in, and where it starts.
  virtual uint32_t segment_id() const = 0;
  virtual const std::byte* segment_base() const = 0;
  virtual const Arena* arena() const = 0;  // Null if it is none.
  // Writes to `data`, in a block of this home, by a way that is faster than copying, as far as
  // there is one; how many bytes it wrote.
  virtual size_t WriteFast(std::byte* /*data*/, absl::Span<const std::byte> /*bytes*/) { return 0; }

 protected:
  ~BlockHome() = default;
};

// Sole owner of a run of bytes; gives them back when destroyed. Movable, not copyable. Three words,
// since there may be one per item.
class Block {
 public:
  Block() = default;
  // Takes over `data`, to be given back to `home`.
  Block(std::byte* data, size_t size, BlockHome* home) : data_(data), size_(size), home_(home) {}
  // Bytes that are no arena's: `owner` keeps them, and they must not be written.
  static Block Foreign(std::shared_ptr<const void> owner, const std::byte* data, size_t size);
  Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        home_(std::exchange(other.home_, nullptr)) {}
  Block& operator=(Block&& other) noexcept {
    Block taken(std::move(other));  // What this block held goes with it.
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    std::swap(home_, taken.home_);
    return *this;
  }
  ~Block() {
    if (home_ != nullptr) home_->Free(data_, size_);
  }

  std::byte* data() const { return data_; }
  // The bytes asked for; the block's capacity may be larger.
  size_t size() const { return size_; }
  absl::Span<const std::byte> span() const { return {data_, size_}; }
  absl::Span<std::byte> mutable_span() const { return {data_, size_}; }

  // Copies `bytes`, which must fit, to `offset`. Much at once into a block that nobody has touched
  // goes through the segment's file: the system then neither clears the pages first nor faults
  // them in one by one, which takes about half the time. If the arena holds more than the caches
  // do, much goes past these.
  void Write(size_t offset, absl::Span<const std::byte> bytes);

  // Where the block lies, for handing it to another process or a device.
  uint32_t segment() const { return home_ == nullptr ? 0 : home_->segment_id(); }
  uint64_t offset() const { return home_ == nullptr ? 0 : data_ - home_->segment_base(); }
  bool IsOf(const Arena& arena) const { return home_ != nullptr && home_->arena() == &arena; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  BlockHome* home_ = nullptr;  // Null for an empty block.
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
  // What the caches hold.
  size_t cache_bytes = CacheBytes();

  // The size of the machine's last cache, 32 MiB where it does not tell.
  static size_t CacheBytes();
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

class Arena {
 public:
  static constexpr size_t kAlignment = 128;
  static constexpr size_t kSmallAlignment = 16;

  static std::shared_ptr<Arena> Create(const ArenaOptions& options);

  // Uninitialised bytes. RESOURCE_EXHAUSTED when over `max_bytes` or when the system has no
  // memory; nothing changes then. `size` 0 gives a block with no bytes.
  absl::StatusOr<Block> Allocate(size_t size);

  ArenaStats stats() const;
  std::vector<SegmentView> segments() const;
  // Changes when a segment goes.
  uint64_t segments_version() const;

  // From now on as with `returns_memory` false: no page goes back to the system, and no segment
  // goes before the arena does.
  void KeepMemory();

  // Segments to come are on this memory node, as far as the system has room there; see numa.h. The
  // first call that names one decides.
  void PreferNode(int node);

 private:
  friend struct PageRun;
  friend struct Slab;
  class Impl;
  explicit Arena(const ArenaOptions& options);
  ~Arena();
  template <typename Home>
  void Free(Home* home, std::byte* data, size_t size);
  void Unref();
  bool OutgrowsCaches() const;

  std::unique_ptr<Impl> impl_;
  std::atomic<size_t> references_{1};  // What Create returned, and every live block.
};

// The process-wide arena for chunks that are on their way (writers, samplers): not shareable,
// unbounded, never destroyed.
const std::shared_ptr<Arena>& ProcessArena();

}  // namespace gear_reverb::memory
