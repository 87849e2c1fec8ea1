// Whether a backend does what the twin does, and how fast it is, for machines on which no test
// program runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "native/device/draw_backend.h"
#include "native/selectors/selector.h"

namespace gear_reverb::device {

// Random batches of changes, draws and first items under every strategy, on the backend and on the
// twin, with `slots` >= 2000 slots. What differed in any bit, a sentence each; empty if nothing
// did. Takes a second or two for 3 * 10^5 slots.
absl::StatusOr<std::vector<std::string>> CheckSelection(std::shared_ptr<SelectBackend> backend,
                                                        uint64_t seed, uint32_t slots);

// Seconds for `draws` draws, with keys, probabilities and importance weights, from `items` items of
// random priorities: the median of five windows of `repeats` in all, after 30 ms of the same. The
// clock is the host's, from one synchronisation to the next.
absl::StatusOr<double> MeasureDraw(std::shared_ptr<SelectBackend> backend,
                                   const selectors::SelectorOptions& strategy, uint64_t items,
                                   uint32_t draws, int repeats);
// The same for the first `k` items of an ordered strategy.
absl::StatusOr<double> MeasureTop(std::shared_ptr<SelectBackend> backend,
                                  const selectors::SelectorOptions& strategy, uint64_t items,
                                  uint32_t k, int repeats);
// The same for an update of `updates` random priorities of weighted items, others each time, from
// memory of the host that the device reads.
absl::StatusOr<double> MeasureUpdate(DrawBackend& backend, uint64_t items, uint32_t updates,
                                     int repeats);

}  // namespace gear_reverb::device
