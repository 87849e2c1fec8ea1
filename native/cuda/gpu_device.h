// A GPU in use: what its streams share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "native/base/mutex.h"
#include "native/cuda/cuda.h"
#include "native/cuda/gpu_output.h"
#include "native/cuda/measure.h"
#include "native/device/device.h"
#include "native/device/pinned_segments.h"
#include "native/device/tiers.h"

namespace gear_reverb::cuda {

// Registers host memory, once for all GPUs of the process, and has its address on one of them.
class CudaRegistrar final : public device::Registrar {
 public:
  CudaRegistrar(int gpu, bool takes_read_only) : gpu_(gpu), takes_read_only_(takes_read_only) {}
  absl::StatusOr<const std::byte*> Register(std::byte* base, size_t bytes, bool read_only) override;
  void Unregister(std::byte* base) override;

 private:
  const int gpu_;
  const bool takes_read_only_;
};

// What was measured of a GPU.
struct MeasuredGpu {
  Choices from_host = UnmeasuredChoices(), from_device = UnmeasuredChoices();
  std::string error = "Not measured yet.";  // Why it was not; "" if it was.
};

class GpuDevice final : public device::Device, public std::enable_shared_from_this<GpuDevice> {
 public:
  GpuDevice(GpuInfo info, const GatherBlocks& blocks, MeasuredGpu measured);

  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override;
  absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewDrawBackend(
      device::Stream stream) override;
  device::DeviceStats stats() const override;
  std::shared_ptr<device::DeviceTier> TierOf(const std::shared_ptr<table::Table>& table) override;
  int gpu() const override { return info_.index; }

  const GpuInfo& info() const { return info_; }
  const GatherBlocks& blocks() const { return blocks_; }
  // For sources of which most are in the GPU's own memory, or are not.
  GatherBlocks blocks(bool mostly_here) const { return mostly_here ? blocks_ : blocks_.ForHost(); }
  // For sources in pinned host memory, and in the GPU's.
  const Choices& host_choices() const { return measured_.from_host; }
  const Choices& device_choices() const { return measured_.from_device; }
  void Count(uint64_t gathered_bytes, uint64_t staged_bytes, uint64_t device_bytes);
  const std::shared_ptr<Fences>& fences() const { return fences_; }

  // The memory's segments; all streams of the GPU that ask share them.
  std::shared_ptr<device::PinnedSegments> SegmentsOf(std::shared_ptr<device::SegmentSource> source);

 private:
  const GpuInfo info_;
  const GatherBlocks blocks_;
  const MeasuredGpu measured_;
  const std::shared_ptr<device::RegistrationBudget> budget_;
  const std::shared_ptr<Fences> fences_ = std::make_shared<Fences>();
  std::atomic<uint64_t> batches_{0}, gathered_bytes_{0}, staged_bytes_{0}, device_bytes_{0};
  device::Tiers tiers_;

  base::Mutex mutex_;
  std::vector<std::weak_ptr<device::PinnedSegments>> segments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::cuda
