// Batches put together from a stream of single samples.
#pragma once

#include <memory>

#include "native/client/connection.h"

namespace gear_reverb::client {

// All that a draw lacks is asked of `samples` in one request, which stays open for the next draw
// where a deadline ends the call.
std::unique_ptr<BatchStream> NewBatchStreamOfSamples(std::unique_ptr<SampleStream> samples);

}  // namespace gear_reverb::client
