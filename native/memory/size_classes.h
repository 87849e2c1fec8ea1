// Which capacity a request gets, and how small blocks are cut from slabs.
//
// Small blocks (up to kMaxSmallBytes) come in classes: multiples of 16 bytes up to 128, of 128
// bytes up to 1 KiB, then four classes per doubling. Larger blocks are runs of whole pages. So a
// block of `size` bytes wastes less than 16 bytes up to 128, less than 128 bytes up to 1 KiB, less
// than a quarter of `size` up to 32 KiB, and less than one page (an eighth of `size`) beyond. The
// tail of a slab that holds no block is at most 1/16 of the slab.
#pragma once

#include <bit>
#include <cstddef>

namespace gear_reverb::memory {

// The arena's page; the unit of runs. (The system's may be larger.)
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kSmallestBlock = 16;
inline constexpr size_t kMaxSmallBytes = 32768;
inline constexpr int kNumSizeClasses = 35;
inline constexpr size_t kMaxBlocksPerSlab = 512;

// The class for `size`, which must be in [1, kMaxSmallBytes].
constexpr int SizeClassOf(size_t size) {
  const size_t last = size - 1;
  if (size <= 128) return static_cast<int>(last / kSmallestBlock);
  if (size <= 1024) return 7 + static_cast<int>(last / 128);
  const int shift = std::bit_width(last) - 1;
  return 15 + (shift - 10) * 4 + static_cast<int>((last >> (shift - 2)) & 3);
}

constexpr size_t SizeClassBytes(int size_class) {
  if (size_class < 8) return (size_class + 1) * kSmallestBlock;
  if (size_class < 15) return (size_class - 6) * size_t{128};
  return static_cast<size_t>(5 + (size_class - 15) % 4) << (8 + (size_class - 15) / 4);
}

// 64 KiB, or kMaxBlocksPerSlab blocks where that is less, or eight where that is more.
constexpr size_t SlabPages(int size_class) {
  const size_t bytes = SizeClassBytes(size_class);
  if (bytes < 128) return bytes * kMaxBlocksPerSlab / kPageBytes;
  return bytes <= 8192 ? 16 : 8 * bytes / kPageBytes;
}

constexpr size_t BlocksPerSlab(int size_class) {
  return SlabPages(size_class) * kPageBytes / SizeClassBytes(size_class);
}

// Pages of a large block. No overflow for any size that fits an address space.
constexpr size_t PagesOf(size_t size) { return size / kPageBytes + (size % kPageBytes != 0); }

constexpr size_t CapacityOf(size_t size) {
  if (size == 0) return 0;
  return size <= kMaxSmallBytes ? SizeClassBytes(SizeClassOf(size)) : PagesOf(size) * kPageBytes;
}

static_assert(SizeClassOf(kMaxSmallBytes) == kNumSizeClasses - 1);
static_assert(SizeClassBytes(kNumSizeClasses - 1) == kMaxSmallBytes);
static_assert(BlocksPerSlab(0) == kMaxBlocksPerSlab);

}  // namespace gear_reverb::memory
