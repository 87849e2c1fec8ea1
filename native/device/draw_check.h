// Whether a backend does for draws what the twin does, kernel by kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "native/device/draw_backend.h"

namespace gear_reverb::device {

// Random directories, changes of their entries, picks and importance weights, on the backend and on
// the twin, all outputs poisoned before. What differed in any byte, a sentence each; empty if
// nothing did.
absl::StatusOr<std::vector<std::string>> CheckDraws(DrawBackend& backend, uint64_t seed,
                                                    int rounds);

}  // namespace gear_reverb::device
