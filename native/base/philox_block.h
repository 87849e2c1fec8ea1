// The block function of Philox 4x32-10 and the stream of 64-bit numbers over it, for host and
// device code. Integers only, so both get the same bits.
#pragma once

#include <cstdint>

#include "native/base/host_device.h"

namespace gear_reverb::base {

struct PhiloxWords {
  uint32_t word[4];
};

// Ten rounds on a 128-bit counter under a 64-bit key.
GR_HOST_DEVICE PhiloxWords PhiloxRounds(PhiloxWords c, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53;
  constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
  // Key increments (Weyl sequence): the golden ratio and sqrt(3) - 1.
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * c.word[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * c.word[2];
    c = {{static_cast<uint32_t>(product1 >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ c.word[3] ^ key1,
          static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

struct PhiloxPair {
  uint64_t number[2];
};

// Numbers 2 `block` and 2 `block` + 1 of a seed's stream.
GR_HOST_DEVICE PhiloxPair PhiloxNumbers(uint64_t seed, uint64_t block) {
  const PhiloxWords words =
      PhiloxRounds({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}},
                   static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  return {{words.word[0] | (uint64_t{words.word[1]} << 32),
           words.word[2] | (uint64_t{words.word[3]} << 32)}};
}

// Number `n` of a seed's stream.
GR_HOST_DEVICE uint64_t PhiloxNumber(uint64_t seed, uint64_t n) {
  const PhiloxPair pair = PhiloxNumbers(seed, n / 2);
  return n % 2 == 0 ? pair.number[0] : pair.number[1];
}

// Of 64 uniform bits: uniform in [0, 1), a multiple of 2^-53.
GR_HOST_DEVICE double UniformDouble(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// Of 64 uniform bits: uniform in [0, bound) by multiply-and-shift; bound > 0.
GR_HOST_DEVICE uint64_t UniformBelow(uint64_t bits, uint64_t bound) {
#ifdef __CUDA_ARCH__
  return __umul64hi(bits, bound);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
#endif
}

}  // namespace gear_reverb::base
