// What the tests of this layer share.
#pragma once

#include <cstddef>

namespace gear_reverb::memory {

inline constexpr size_t kKiB = size_t{1} << 10;
inline constexpr size_t kMiB = size_t{1} << 20;

}  // namespace gear_reverb::memory
