#include "native/base/philox.h"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <random>

namespace gear_reverb::base {

std::array<uint32_t, 4> PhiloxBlock(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  const PhiloxWords words =
      PhiloxRounds({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

uint64_t Philox::At(uint64_t n) const { return PhiloxNumber(seed_, n); }

void Philox::Fill(absl::Span<uint64_t> numbers) {
  size_t i = 0;
  if (position_ % 2 == 1 && !numbers.empty()) numbers[i++] = Next();
  for (; i + 2 <= numbers.size(); i += 2, position_ += 2) {
    const PhiloxPair pair = PhiloxNumbers(seed_, position_ / 2);
    numbers[i] = pair.number[0];
    numbers[i + 1] = pair.number[1];
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
