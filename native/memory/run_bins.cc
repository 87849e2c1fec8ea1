#include "native/memory/run_bins.h"

#include <bit>

namespace gear_reverb::memory {
namespace {

// How many runs of the bin of the wanted size itself are looked at.
constexpr int kMaxProbes = 8;

}  // namespace

// Bins 1 to 15 are exact; then each doubling has eight of equal width.
int RunBins::BinOf(size_t pages) {
  if (pages < 8) return static_cast<int>(pages);
  const int shift = std::bit_width(pages) - 1;
  return 8 + (shift - 3) * 8 + static_cast<int>((pages >> (shift - 3)) & 7);
}

void RunBins::Insert(PageRun* run) {
  const int bin = BinOf(run->pages);
  run->previous = nullptr;
  run->next = heads_[bin];
  if (run->next != nullptr) run->next->previous = run;
  heads_[bin] = run;
  occupied_[bin / 64] |= uint64_t{1} << (bin % 64);
}

void RunBins::Remove(PageRun* run) {
  const int bin = BinOf(run->pages);
  if (run->next != nullptr) run->next->previous = run->previous;
  if (run->previous != nullptr) {
    run->previous->next = run->next;
  } else {
    heads_[bin] = run->next;
    if (run->next == nullptr) occupied_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  }
  run->previous = run->next = nullptr;
}

PageRun* RunBins::FindFit(size_t pages) const {
  const int bin = BinOf(pages);
  PageRun* run = heads_[bin];
  for (int probe = 0; run != nullptr && probe < kMaxProbes; ++probe, run = run->next) {
    if (run->pages >= pages) return run;
  }
  // Any run of a later bin is large enough.
  const int from = bin + 1;
  for (int word = from / 64; word < kNumBins / 64; ++word) {
    uint64_t bits = occupied_[word];
    if (word == from / 64) bits &= ~uint64_t{0} << (from % 64);
    if (bits != 0) return heads_[word * 64 + std::countr_zero(bits)];
  }
  return nullptr;
}

PageRun* RunBins::Largest(size_t pages) const {
  for (int word = kNumBins / 64 - 1; word >= 0; --word) {
    if (occupied_[word] == 0) continue;
    const int bin = word * 64 + std::bit_width(occupied_[word]) - 1;
    return bin >= BinOf(pages) ? heads_[bin] : nullptr;
  }
  return nullptr;
}

}  // namespace gear_reverb::memory
