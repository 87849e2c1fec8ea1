// Sizes and times that the streams over shared memory share.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace gear_reverb::client {

// Of a writer's ring. What is in it at a time should stay in the caches of both sides.
inline constexpr size_t kRingBytes = size_t{1} << 20;
// Of a ring for stacked rows. A process has few of these, so that each may be large: neither side
// should wait for the other where it need not.
inline constexpr size_t kRowRingBytes = size_t{4} << 20;
// Waiting threads look so often whether they should go on.
inline constexpr absl::Duration kLookEvery = absl::Milliseconds(100);

}  // namespace gear_reverb::client
