// Tells whether this process is a fork of the one that made an object.
#pragma once

#include <cstdint>

namespace gear_reverb::memory {

// How many forks lie between the process that first called this and the current one. Costs a load.
uint64_t ForkGeneration();

}  // namespace gear_reverb::memory
