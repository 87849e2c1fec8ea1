#include "native/cuda/cuda.h"
#include "native/cuda/gpu.h"

namespace gear_reverb::cuda {

absl::StatusOr<std::shared_ptr<device::Device>> OpenGpu(int) { return Availability(); }
std::vector<device::DeviceStats> StatsOfOpenGpus() { return {}; }
absl::StatusOr<std::vector<std::string>> SelfTest(int, uint64_t, int, bool) {
  return Availability();
}
absl::StatusOr<double> MeasureGather(int, const std::string&, const std::string&, uint64_t,
                                     uint64_t, uint64_t, int) {
  return Availability();
}
absl::StatusOr<double> MeasureCopy(int, const std::string&, uint64_t, int) {
  return Availability();
}

}  // namespace gear_reverb::cuda
