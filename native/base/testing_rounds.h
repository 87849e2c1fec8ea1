// How long a test of one thread goes on.
#pragma once

namespace gear_reverb::base::testing {

// `rounds`, but few under ThreadSanitizer, which slows such a test most and finds nothing in it.
constexpr int Rounds(int rounds) {
#ifdef __SANITIZE_THREAD__
  return rounds / 20;
#else
  return rounds;
#endif
}

}  // namespace gear_reverb::base::testing
