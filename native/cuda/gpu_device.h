// A GPU in use: what its streams share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "native/base/mutex.h"
#include "native/cuda/cuda.h"
#include "native/cuda/measure.h"
#include "native/device/device.h"
#include "native/device/pinned_segments.h"

namespace gear_reverb::cuda {

// Registers host memory with all GPUs of the process.
class CudaRegistrar final : public device::Registrar {
 public:
  explicit CudaRegistrar(int gpu) : gpu_(gpu) {}
  absl::StatusOr<const std::byte*> Register(std::byte* base, size_t bytes) override;
  void Unregister(std::byte* base) override;

 private:
  const int gpu_;
};

class GpuDevice final : public device::Device, public std::enable_shared_from_this<GpuDevice> {
 public:
  GpuDevice(GpuInfo info, Choices choices, std::string choices_error);

  absl::StatusOr<std::unique_ptr<device::GatherStream>> NewStream(size_t kept) override;
  absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewDrawBackend() override;
  device::DeviceStats stats() const override;
  int gpu() const override { return info_.index; }

  const GpuInfo& info() const { return info_; }
  const Choices& choices() const { return choices_; }
  void Count(uint64_t gathered_bytes, uint64_t staged_bytes);

  // The arena's segments; all streams of the GPU that ask share them.
  std::shared_ptr<device::PinnedSegments> SegmentsOf(std::shared_ptr<memory::Arena> arena);

 private:
  const GpuInfo info_;
  const Choices choices_;
  const std::string choices_error_;
  const std::shared_ptr<device::RegistrationBudget> budget_;
  std::atomic<uint64_t> batches_{0}, gathered_bytes_{0}, staged_bytes_{0};

  struct OfArena {
    std::weak_ptr<memory::Arena> arena;
    std::weak_ptr<device::PinnedSegments> segments;
  };
  base::Mutex mutex_;
  std::vector<OfArena> arenas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::cuda
