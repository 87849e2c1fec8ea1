// A GPU as a device that batches are gathered on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "native/device/device.h"

namespace gear_reverb::cuda {

// GPU number `index`. What is in use already is shared. Errors of Availability; INVALID_ARGUMENT
// for a number that there is not.
absl::StatusOr<std::shared_ptr<device::Device>> OpenGpu(int index);

// Of the GPUs that are in use.
std::vector<device::DeviceStats> StatsOfOpenGpus();

// Runs the kernels against random cases of `seed`, from pinned host memory and from the GPU's own,
// and a stream's whole way. What differed; empty if nothing did. A round takes a second or so, most
// of it for cases of several megabytes.
absl::StatusOr<std::vector<std::string>> SelfTest(int index, uint64_t seed, int rounds,
                                                  bool large = true);

// Bytes per second of a gather of `rows` rows of `pieces` pieces of `piece_bytes` each, all rows at
// random places, as a median of `repeats`: by "lanes", "bulk" or "engine", from the "host" (pinned)
// or the "device".
absl::StatusOr<double> MeasureGather(int index, const std::string& way, const std::string& place,
                                     uint64_t rows, uint64_t pieces, uint64_t piece_bytes,
                                     int repeats);
// Bytes per second of one large copy: "host" to device, or "device" to device, counting bytes once.
absl::StatusOr<double> MeasureCopy(int index, const std::string& place, uint64_t bytes,
                                   int repeats);

}  // namespace gear_reverb::cuda
