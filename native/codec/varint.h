// Base-128 varints, least significant group first, as in Snappy and protocol buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace gear_reverb::codec {

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes a varint off the front of `bytes`. nullopt, and `bytes` as it was, if it is cut short or
// does not fit 64 bits.
inline std::optional<uint64_t> TakeVarint(absl::Span<const std::byte>* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto group = static_cast<uint64_t>((*bytes)[i]);
    if (i == 9 && group > 1) return std::nullopt;
    value |= (group & 0x7f) << (7 * i);
    if (group < 0x80) {
      bytes->remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace gear_reverb::codec
