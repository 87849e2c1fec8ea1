// Free runs by size: a two-level segregated fit (Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS
// 2004), eight bins per doubling, with a bit per bin. Every operation is O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "native/memory/segment.h"

namespace gear_reverb::memory {

// Thread-compatible. Owns no run.
class RunBins {
 public:
  void Insert(PageRun* run);
  // `run` must be in these bins, with the page count it was inserted with.
  void Remove(PageRun* run);

  // A run of at least `pages`, close to that; null if none is found. (A fitting run deep in a bin
  // with many others may be overlooked.)
  PageRun* FindFit(size_t pages) const;

  // A run of the last non-empty bin, if that bin is for at least `pages`; otherwise null.
  PageRun* Largest(size_t pages) const;

 private:
  static constexpr int kNumBins = 512;

  static int BinOf(size_t pages);

  std::array<PageRun*, kNumBins> heads_{};
  std::array<uint64_t, kNumBins / 64> occupied_{};
};

}  // namespace gear_reverb::memory
