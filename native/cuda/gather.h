// One gather on a GPU by any of the ways, from a plan whose pieces are at the GPU's addresses.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/cuda/gather_kernel.h"
#include "native/cuda/resources.h"
#include "native/device/gather_plan.h"

namespace gear_reverb::cuda {

enum class GatherWay {
  kLanes,
  kBulk,
  kEngine,  // Copies by the copy engine, one per piece; rows that are more than copies go by lanes.
};
const char* Name(GatherWay way);
absl::StatusOr<GatherWay> WayOf(const std::string& name);

// What a launch needs besides the output: host memory to write the list to, and device memory.
size_t ListBytes(const device::GatherPlan& plan);

// Puts the gather on the stream, of the current GPU. `host_list` (pinned) and `device_list`, of
// ListBytes each and multiples of 16, and the sources, are used until the stream has come past.
absl::Status StartGather(GatherWay way, const device::GatherPlan& plan, std::byte* output,
                         std::byte* host_list, std::byte* device_list, int multiprocessors,
                         cudaStream_t stream);

}  // namespace gear_reverb::cuda
