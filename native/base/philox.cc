#include "native/base/philox.h"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <random>

namespace gear_reverb::base {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
// Key increments (Weyl sequence): the golden ratio and sqrt(3) - 1.
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

inline std::array<uint32_t, 4> Block(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * c[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(product0)};
    k = {k[0] + kWeyl0, k[1] + kWeyl1};
  }
  return c;
}

inline std::array<uint64_t, 2> Pair(uint64_t seed, uint64_t block) {
  const std::array<uint32_t, 4> words =
      Block({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {words[0] | (uint64_t{words[1]} << 32), words[2] | (uint64_t{words[3]} << 32)};
}

}  // namespace

std::array<uint32_t, 4> PhiloxBlock(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  return Block(counter, key);
}

uint64_t Philox::At(uint64_t n) const { return Pair(seed_, n / 2)[n % 2]; }

void Philox::Fill(absl::Span<uint64_t> numbers) {
  size_t i = 0;
  if (position_ % 2 == 1 && !numbers.empty()) numbers[i++] = Next();
  for (; i + 2 <= numbers.size(); i += 2, position_ += 2) {
    const std::array<uint64_t, 2> pair = Pair(seed_, position_ / 2);
    numbers[i] = pair[0];
    numbers[i + 1] = pair[1];
  }
  if (i < numbers.size()) numbers[i] = Next();
}

uint64_t RandomUint64() {
  uint64_t bits = 0;
  size_t filled = 0;
  while (filled < sizeof(bits)) {
    const ssize_t got =
        getrandom(reinterpret_cast<char*>(&bits) + filled, sizeof(bits) - filled, 0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (got < 0 && errno != EINTR) {
      // No getrandom (ENOSYS under some sandboxes): the library's source of entropy instead.
      std::random_device device;
      return (uint64_t{device()} << 32) | device();
    }
  }
  return bits;
}

}  // namespace gear_reverb::base
