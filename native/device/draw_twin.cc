#include <algorithm>

#include "native/batch/buffer_pool.h"
#include "native/device/draw_backend.h"
#include "native/device/gather_plan.h"

namespace gear_reverb::device {
namespace {

class NothingToWaitFor final : public Mark {
 public:
  absl::StatusOr<bool> done() const override { return true; }
  absl::Status Wait() const override { return absl::OkStatus(); }
  absl::Status PutBefore(Stream) const override { return absl::OkStatus(); }
};

class DrawTwin final : public DrawBackend {
 public:
  const std::shared_ptr<SelectBackend>& select() const override { return select_; }
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateHost(size_t bytes) override {
    return buffers_->Allocate(bytes);
  }
  void AddSource(std::shared_ptr<memory::Arena>, DeviceTier*) override {}
  const std::byte* AddressOf(const std::byte* data, uint64_t) override { return data; }
  absl::StatusOr<std::unique_ptr<Mark>> NewMark(Stream) override {
    return std::make_unique<NothingToWaitFor>();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }

  absl::Status WriteEntries(const DirectoryView& directory, const EntryChanges& changes,
                            Stream) override {
    for (uint64_t i = changes.Steps(directory); i-- > 0;) WriteEntry(directory, changes, i);
    return absl::OkStatus();
  }
  absl::Status Pick(const DirectoryView& directory, const Picked& picked, Stream) override {
    const uint64_t steps = picked.Steps(directory);
    for (uint64_t i = 0; i < steps; ++i) device::Pick(directory, picked, i);
    return absl::OkStatus();
  }
  absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                       Stream) override {
    const double least = *std::min_element(probabilities, probabilities + n);
    for (uint32_t i = 0; i < n; ++i) weights[i] = ImportanceWeight(probabilities[i], least, beta);
    return absl::OkStatus();
  }
  absl::Status Gather(const RowList& list, const Pieces&, std::byte* output, Stream) override {
    GatherOnCpu(list, output);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<SelectBackend> select_ = MakeSelectTwin();
  const std::shared_ptr<batch::BufferPool> buffers_ = batch::BufferPool::Create(/*kept=*/4);
};

}  // namespace

std::unique_ptr<DrawBackend> MakeDrawTwin() { return std::make_unique<DrawTwin>(); }

}  // namespace gear_reverb::device
