// For loops that wait for another processor's store.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gear_reverb::base {

inline void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace gear_reverb::base
