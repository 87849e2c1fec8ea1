// How long a test of one thread goes on.
#pragma once

namespace gear_reverb::base::testing {

// `rounds`, but few under ThreadSanitizer, which slows such a test most and finds nothing in it,
// and on an emulated GPU.
constexpr int Rounds(int rounds) {
#if defined(__SANITIZE_THREAD__) || defined(GEAR_REVERB_FEW_ROUNDS)
  return rounds / 20;
#else
  return rounds;
#endif
}

}  // namespace gear_reverb::base::testing
