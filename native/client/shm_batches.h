// Batches that point into shared memory, taken apart into samples.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/batch/drawn_batch.h"
#include "native/table/item.h"

namespace gear_reverb::client {

// One sample for each item. The chunks of numbers are where the batch's pieces are, and hold the
// lease; strings are copied. INVALID_ARGUMENT for pieces that are not whole steps.
absl::StatusOr<std::vector<table::SampledItem>> ToSamples(const batch::DrawnBatch& batch);

}  // namespace gear_reverb::client
