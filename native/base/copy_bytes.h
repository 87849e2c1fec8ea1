// The two ways of copying one piece: through the caches, and past them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace gear_reverb::base {

// Meant for small pieces: no call up to 64 bytes.
inline void CopySmall(std::byte* to, const std::byte* from, size_t bytes) {
  // The first and the last bytes of a size class may overlap; all are read before one is written.
  const auto copy_ends = [&](auto part) {
    decltype(part) first, last;
    std::memcpy(&first, from, sizeof(part));
    std::memcpy(&last, from + bytes - sizeof(part), sizeof(part));
    std::memcpy(to, &first, sizeof(part));
    std::memcpy(to + bytes - sizeof(part), &last, sizeof(part));
  };
  struct Bytes16 {
    uint64_t halves[2];
  };
  struct Bytes32 {
    uint64_t quarters[4];
  };
  if (bytes > 64) {
    std::memcpy(to, from, bytes);
  } else if (bytes > 32) {
    copy_ends(Bytes32{});
  } else if (bytes >= 16) {
    copy_ends(Bytes16{});
  } else if (bytes >= 8) {
    copy_ends(uint64_t{});
  } else if (bytes >= 4) {
    copy_ends(uint32_t{});
  } else if (bytes >= 2) {
    copy_ends(uint16_t{});
  } else if (bytes == 1) {
    *to = *from;
  }
}

// Non-temporal stores, by AVX2 or AVX-512, neither read the destination's lines before they write
// them nor leave them in the caches.
bool HasStreaming();  // Whether this processor has them.
// Whether it gains by them where much is copied: Intel's do, while AMD's (Zen 5) write as fast
// through their caches, and more than that as long as these hold it. See benchmarks/NOTES.md.
bool StreamingPays();
// What StreamingPays says from now on, where the processor has it; null: what is so. For tests.
void SetStreamingPays(std::optional<bool> pays);
// Call FinishStreaming in the same thread before another one may read what was copied.
void CopyStreaming(std::byte* to, const std::byte* from, size_t bytes);
void FinishStreaming();

}  // namespace gear_reverb::base
