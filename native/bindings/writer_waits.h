// When calls of writers wait, and for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gear_reverb::bindings {

// Below this a step is copied faster than the GIL is released and taken again.
inline constexpr size_t kReleaseGilFromBytes = 64 << 10;

// None, or <= 0: for ever.
inline absl::Time DeadlineOfMilliseconds(std::optional<int64_t> timeout) {
  if (!timeout.has_value() || *timeout <= 0) return absl::InfiniteFuture();
  return absl::Now() + absl::Milliseconds(*timeout);
}

}  // namespace gear_reverb::bindings
