#include "native/dm_checkpoint/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace gear_reverb::dm_checkpoint {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

// Sarwate's table, and seven more, by which eight bytes go in one step ("slicing by 8", Kounavis
// and Berry, 2008): table k is of a byte that k zero bytes follow.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReversedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  uint32_t crc = ~0u;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data(), sizeof(eight));
    eight ^= crc;
    crc = 0;
    for (int i = 0; i < 8; ++i) crc ^= kTables[7 - i][eight >> 8 * i & 0xff];
  }
  for (const char c : bytes) crc = crc >> 8 ^ kTables[0][(crc ^ c) & 0xff];
  return ~crc;
}

}  // namespace gear_reverb::dm_checkpoint
