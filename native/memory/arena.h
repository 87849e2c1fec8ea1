// The arena that holds all chunk bytes: memory in segments, blocks by size class.
//
// Thread-safe. Invariants:
//  1. A block starts at a multiple of kAlignment and never crosses a segment.
//  2. A segment's address and file descriptor stay valid while the arena lives or any block of it
//     does (blocks keep the arena alive).
//  3. Allocation and freeing are O(1) amortised in the number of live blocks.
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
};

struct ArenaOptions {
  // Segments are at least this large; a larger block gets a segment of its own size.
  size_t segment_bytes = size_t{64} << 20;
  // Limit on the capacity of live blocks; 0 means none.
  size_t max_bytes = 0;
  // memfd-backed segments can be shared with other processes; anonymous ones cannot.
  bool shareable = true;
};

struct ArenaStats {
  size_t reserved_bytes = 0;  // Address space of all segments.
  size_t used_bytes = 0;      // Capacity of live blocks.
  size_t payload_bytes = 0;   // Bytes asked for by live blocks.
  size_t live_blocks = 0;
  size_t segments = 0;
};

// A segment as others may map it. `fd` is -1 for anonymous segments and stays the arena's.
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
