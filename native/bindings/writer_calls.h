// What the calls of both writers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gear_reverb::bindings {

// Below this a step is copied faster than the GIL is released and taken again.
inline constexpr size_t kReleaseGilFromBytes = size_t{64} << 10;

// None, and whatever is not positive, means no deadline.
inline absl::Time DeadlineOf(std::optional<int64_t> timeout_ms) {
  if (!timeout_ms.has_value() || *timeout_ms <= 0) return absl::InfiniteFuture();
  return absl::Now() + absl::Milliseconds(*timeout_ms);
}

}  // namespace gear_reverb::bindings
