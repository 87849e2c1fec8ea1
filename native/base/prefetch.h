// Bringing memory near that will soon be read or written.
#pragma once

namespace gear_reverb::base {

// A compiler drops the call of a function that it knows to change nothing, and a prefetch alone
// changes nothing: functions whose only purpose is to prefetch vanished. The empty asm keeps them.
inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace gear_reverb::base
