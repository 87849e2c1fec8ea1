// Drawn items put together, and cut apart again.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "native/batch/drawn_batch.h"

namespace gear_reverb::batch {

// OK if the items can be in one batch, as AreAlike has it. Otherwise INVALID_ARGUMENT, naming the
// column and both sides. Neither is empty.
absl::Status CheckAlike(const DrawnBatch& first, const DrawnBatch& next);

// All items, in order. `parts` is not empty. Errors as of CheckAlike.
absl::StatusOr<DrawnBatch> Join(std::vector<DrawnBatch> parts);

// Cuts off the items from number `n` on, which share the lease.
DrawnBatch SplitOff(DrawnBatch* batch, size_t n);

}  // namespace gear_reverb::batch
