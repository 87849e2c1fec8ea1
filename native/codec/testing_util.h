// What the tests of this layer share.
#pragma once

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace gear_reverb::codec {

inline absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace gear_reverb::codec
