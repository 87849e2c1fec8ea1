// Batches put together from a stream of single samples.
#pragma once

#include <memory>

#include "native/client/connection.h"

namespace gear_reverb::client {

// All that a batch lacks is asked of `samples` in one request. The stream must have no limit on the
// wait for a sample: a call that ends by its deadline leaves its request open for the next one.
std::unique_ptr<BatchStream> NewBatchStreamOfSamples(std::unique_ptr<SampleStream> samples);

}  // namespace gear_reverb::client
