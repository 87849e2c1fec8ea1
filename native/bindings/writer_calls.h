// What calls of writers and clients share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "native/bindings/definitions.h"

namespace gear_reverb::bindings {

// Below this a step is copied faster than the GIL is released and taken again.
inline constexpr size_t kReleaseGilFromBytes = size_t{64} << 10;

// None means no deadline; whatever is not positive, now.
inline absl::Time DeadlineOf(std::optional<int64_t> timeout_ms) {
  if (!timeout_ms.has_value()) return absl::InfiniteFuture();
  return absl::Now() + absl::Milliseconds(std::max<int64_t>(*timeout_ms, 0));
}

// Finds out, before the first item, by which way the data will go. A server that is not there is
// what the first item meets.
void Connect(const ClientPtr& client);

}  // namespace gear_reverb::bindings
