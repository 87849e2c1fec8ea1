// What holds for a client's streams whatever carries them.
#pragma once

#include <cstdint>

namespace gear_reverb::server {

// Back-pressure: with this many items waiting for the rate limiter no more is read.
inline constexpr int kMaxPendingItems = 1000;
// Drawn at a time for a stream: what is drawn counts as sampled even if the client goes away.
inline constexpr int64_t kMaxDraw = 64;

}  // namespace gear_reverb::server
