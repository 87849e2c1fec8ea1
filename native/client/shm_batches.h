// Batches that point into shared memory: cut, joined, and taken apart into samples.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/batch/drawn_batch.h"
#include "native/table/item.h"

namespace gear_reverb::client {

// Adds the items of `from` to `*to`. INVALID_ARGUMENT, naming the column and both sides, where they
// do not match: then `*to` is as before.
absl::Status Append(batch::DrawnBatch from, batch::DrawnBatch* to);

// Cuts off the items from number `n` on, which share the lease.
batch::DrawnBatch SplitOff(batch::DrawnBatch* batch, size_t n);

// One sample for each item. The chunks of numbers are where the batch's pieces are, and hold the
// lease; strings are copied. INVALID_ARGUMENT for pieces that are not whole steps.
absl::StatusOr<std::vector<table::SampledItem>> ToSamples(const batch::DrawnBatch& batch);

}  // namespace gear_reverb::client
