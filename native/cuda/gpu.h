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

struct ColumnShape {
  uint64_t pieces = 1;       // Of each row.
  uint64_t piece_bytes = 0;  // Of each piece of the longest rows.
};
// Items whose columns are rows of one gather.
struct GatherShape {
  uint64_t items = 0;
  std::vector<ColumnShape> columns;
  double least = 1;  // Of the longest items' length, drawn for each item; in (0, 1].
};
// Bytes per second of one gather, all pieces at random places, as a median of `repeats`: by
// "lanes", "bulk" or "engine", from the "host" (pinned) or the "device".
absl::StatusOr<double> MeasureGather(int index, const std::string& way, const std::string& place,
                                     const GatherShape& shape, int repeats);
// Bytes per second of one large copy: "host" to device, or "device" to device, counting bytes once.
absl::StatusOr<double> MeasureCopy(int index, const std::string& place, uint64_t bytes,
                                   int repeats);

}  // namespace gear_reverb::cuda
