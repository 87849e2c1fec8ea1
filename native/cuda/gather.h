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
// The kernel that a way's rows go by, of the engine those that are more than copies.
constexpr GatherKernel KernelOf(GatherWay way) {
  return way == GatherWay::kBulk ? GatherKernel::kBulk : GatherKernel::kLanes;
}
const char* Name(GatherWay way);
absl::StatusOr<GatherWay> WayOf(const std::string& name);

// What a launch needs besides the output: host memory to write the list to, and device memory.
size_t ListBytes(const device::GatherPlan& plan);

// Puts the gather on the stream, of the current GPU. `host_list` (pinned) and `device_list`, of
// ListBytes each and multiples of 16, and the sources, are used until the stream has come past.
absl::Status StartGather(GatherWay way, const device::GatherPlan& plan, std::byte* output,
                         std::byte* host_list, std::byte* device_list, const GatherBlocks& held,
                         cudaStream_t stream);

// The two halves of that, for a gather by a kernel alone: the list's way to the GPU, and the launch
// on a list that is there.
absl::Status UploadList(const device::GatherPlan& plan, std::byte* host_list,
                        std::byte* device_list, cudaStream_t stream);
absl::Status LaunchUploaded(GatherKernel kernel, const device::GatherPlan& plan, std::byte* output,
                            const std::byte* device_list, const GatherBlocks& held,
                            cudaStream_t stream);

}  // namespace gear_reverb::cuda
