#include <atomic>
#include <optional>
#include <utility>

#include "native/base/status.h"
#include "native/batch/buffer_pool.h"
#include "native/device/device.h"
#include "native/device/sources.h"
#include "native/device/tiers.h"

namespace gear_reverb::device {
namespace {

class CpuOutput final : public Output {
 public:
  explicit CpuOutput(std::shared_ptr<std::byte> buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() const override { return buffer_.get(); }
  absl::Status ShareWith(uintptr_t) override { return absl::OkStatus(); }
  absl::Status LendTo(Stream) override { return absl::OkStatus(); }
  absl::Status Wait() override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<std::byte> buffer_;
};

class CpuDevice final : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
  absl::StatusOr<std::unique_ptr<GatherStream>> NewStream(size_t kept) override;

  absl::StatusOr<std::unique_ptr<DrawBackend>> NewDrawBackend(Stream) override {
    return MakeDrawTwin();
  }

  DeviceStats stats() const override {
    DeviceStats stats;
    stats.name = "cpu";
    stats.choices.push_back({UINT64_MAX, "twin", 0, 0});
    stats.batches = batches_.load(std::memory_order_relaxed);
    stats.gathered_bytes = gathered_bytes_.load(std::memory_order_relaxed);
    stats.device_bytes = device_bytes_.load(std::memory_order_relaxed);
    stats.tiers = tiers_.stats();
    return stats;
  }

  std::shared_ptr<DeviceTier> TierOf(const std::shared_ptr<table::Table>& table) override {
    return tiers_.Of(table, NewCpuTierMemory);
  }

  void Count(uint64_t gathered_bytes, uint64_t device_bytes) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    gathered_bytes_.fetch_add(gathered_bytes, std::memory_order_relaxed);
    device_bytes_.fetch_add(device_bytes, std::memory_order_relaxed);
  }

 private:
  Tiers tiers_;
  std::atomic<uint64_t> batches_{0}, gathered_bytes_{0}, device_bytes_{0};
};

class CpuStream final : public GatherStream {
 public:
  CpuStream(std::shared_ptr<CpuDevice> device, size_t kept)
      : device_(std::move(device)), buffers_(batch::BufferPool::Create(kept)) {}

  // All memory of the process is at the twin's addresses.
  void SetSources(std::shared_ptr<SegmentSource>, std::shared_ptr<DeviceTier> tier) override {
    sources_.reset();
    if (tier != nullptr) sources_.emplace(std::move(tier));
  }

  absl::StatusOr<std::shared_ptr<Output>> Gather(GatherPlan plan, uint64_t bytes,
                                                 std::shared_ptr<const void>) override {
    Sources::Resolved resolved;
    if (sources_.has_value()) resolved = sources_->Resolve(&plan);
    auto output = Write(bytes, 0, nullptr, [&](std::byte* data) {
      GatherOnCpu(plan.list(), data);
      return absl::OkStatus();
    });
    if (output.ok()) device_->Count(plan.source_bytes(), resolved.device_bytes);
    return output;
  }

  absl::StatusOr<std::shared_ptr<Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void>,
      absl::FunctionRef<absl::Status(std::byte*)> write) override {
    GR_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> buffer, buffers_->Allocate(bytes));
    GR_RETURN_IF_ERROR(write(buffer.get()));
    if (source_bytes > 0) device_->Count(source_bytes, 0);
    return std::make_shared<CpuOutput>(std::move(buffer));
  }

 private:
  const std::shared_ptr<CpuDevice> device_;
  const std::shared_ptr<batch::BufferPool> buffers_;
  std::optional<Sources> sources_;  // None: all pieces are where the plan says.
};

absl::StatusOr<std::unique_ptr<GatherStream>> CpuDevice::NewStream(size_t kept) {
  return std::make_unique<CpuStream>(shared_from_this(), kept);
}

}  // namespace

std::shared_ptr<Device> NewCpuDevice() { return std::make_shared<CpuDevice>(); }

}  // namespace gear_reverb::device
