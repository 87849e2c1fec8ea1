// CRC-32C (Castagnoli), as TFRecord files have it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace gear_reverb::dm_checkpoint {

// About a byte per cycle; no state, thread-safe.
uint32_t Crc32c(absl::string_view bytes);

// What TFRecord files store of it, so that a CRC over data with CRCs in it stays strong.
inline uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace gear_reverb::dm_checkpoint
