// Philox4x32-10, the counter-based random generator of Salmon, Moraes, Dror and Shaw, "Parallel
// random numbers: as easy as 1, 2, 3" (SC 2011). Number n of a seed is a pure function of
// (seed, n), so CPU and GPU code, or several ranks, can draw the same numbers.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "native/base/philox_block.h"

namespace gear_reverb::base {

// The block function: ten rounds on a 128-bit counter under a 64-bit key.
std::array<uint32_t, 4> PhiloxBlock(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The stream of 64-bit numbers of one seed. Copyable; position can be saved and restored.
class Philox {
 public:
  explicit Philox(uint64_t seed, uint64_t position = 0) : seed_(seed), position_(position) {}

  // The next 64 uniform bits. Number n is half (n mod 2) of block n / 2.
  uint64_t Next() { return At(position_++); }
  // Number `n` of the stream, wherever the stream stands.
  uint64_t At(uint64_t n) const;

  // What as many calls of Next would give, at half the price.
  void Fill(absl::Span<uint64_t> numbers);

  // Uniform in [0, 1), a multiple of 2^-53.
  double NextDouble() { return ToDouble(Next()); }
  // Uniform in [0, bound) by multiply-and-shift; bound > 0. (Bias below bound / 2^64.)
  uint64_t NextBelow(uint64_t bound) { return ToBelow(Next(), bound); }

  // The same two maps for numbers from Fill.
  static double ToDouble(uint64_t bits) { return UniformDouble(bits); }
  static uint64_t ToBelow(uint64_t bits, uint64_t bound) { return UniformBelow(bits, bound); }

  uint64_t seed() const { return seed_; }
  uint64_t position() const { return position_; }

 private:
  uint64_t seed_;
  uint64_t position_;
};

// 64 bits from the operating system's entropy source: for seeds, keys and tokens.
uint64_t RandomUint64();

}  // namespace gear_reverb::base
