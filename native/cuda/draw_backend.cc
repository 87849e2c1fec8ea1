#include "native/cuda/draw_backend.h"

#include <utility>
#include <vector>

#include "native/cuda/draw_kernels.h"
#include "native/cuda/resources.h"
#include "native/cuda/select_backend.h"

namespace gear_reverb::cuda {
namespace {

constexpr size_t kKeptUploads = 16;

class EventMark final : public device::Mark {
 public:
  EventMark(int gpu, Event event) : gpu_(gpu), event_(std::move(event)) {}
  ~EventMark() override {
    const CurrentGpu current(gpu_);
    event_ = Event();
  }
  absl::StatusOr<bool> done() const override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    return IsDone(event_);
  }
  absl::Status Wait() const override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(cudaEventSynchronize(event_.get()), "cudaEventSynchronize");
  }
  absl::Status PutBefore(device::Stream stream) const override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_.get(), 0),
                    "cudaStreamWaitEvent");
  }

 private:
  const int gpu_;
  Event event_;
};

// Goes back to its pool with its last owner.
struct PooledMemory {
  ~PooledMemory() {
    const CurrentGpu current(gpu);
    (void)pool->Give(std::move(buffer));
  }
  int gpu;
  std::shared_ptr<PinnedPool> pool;
  PinnedPool::Buffer buffer;
};

class GpuDrawBackend final : public device::DrawBackend {
 public:
  GpuDrawBackend(std::shared_ptr<GpuDevice> gpu, std::shared_ptr<device::SelectBackend> select,
                 device::Stream stream)
      : gpu_(std::move(gpu)), select_(std::move(select)), stream_(ToStream(stream)) {}

  const std::shared_ptr<device::SelectBackend>& select() const override { return select_; }

  absl::StatusOr<std::shared_ptr<std::byte>> AllocateHost(size_t bytes) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    GR_ASSIGN_OR_RETURN(PinnedPool::Buffer buffer, uploads_->Take(bytes));
    std::byte* const data = buffer.data();
    return std::shared_ptr<std::byte>(
        std::shared_ptr<PooledMemory>(new PooledMemory{gpu_->gpu(), uploads_, std::move(buffer)}),
        data);
  }

  void AddSource(std::shared_ptr<memory::Arena> arena, device::DeviceTier* tier) override {
    sources_.push_back(gpu_->SegmentsOf(std::make_shared<device::ArenaSource>(std::move(arena))));
    if (tier != nullptr) tier->UseSegments(sources_.back());
  }

  const std::byte* AddressOf(const std::byte* data, uint64_t bytes) override {
    if (const std::byte* const found = Find(data, bytes)) return found;
    for (const auto& segments : sources_) segments->WaitUntilTried();
    return Find(data, bytes);
  }

  absl::StatusOr<std::unique_ptr<device::Mark>> NewMark(device::Stream stream) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    GR_ASSIGN_OR_RETURN(Event event, NewEvent());
    GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(event.get(), ToStream(stream)));
    return std::make_unique<EventMark>(gpu_->gpu(), std::move(event));
  }

  absl::Status Synchronize() override {
    return On("waiting for draws", [&] {
      return stream_ == nullptr ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream_);
    });
  }

  absl::Status WriteEntries(const device::DirectoryView& directory,
                            const device::EntryChanges& changes, device::Stream stream) override {
    return On("the launch of WriteEntries",
              [&] { return LaunchWriteEntries(directory, changes, ToStream(stream)); });
  }
  absl::Status Pick(const device::DirectoryView& directory, const device::Picked& picked,
                    device::Stream stream) override {
    return On("the launch of Pick",
              [&] { return LaunchPick(directory, picked, ToStream(stream)); });
  }
  absl::Status Weights(const double* probabilities, uint32_t n, double beta, float* weights,
                       device::Stream stream) override {
    return On("the launch of Weights",
              [&] { return LaunchWeights(probabilities, n, beta, weights, ToStream(stream)); });
  }
  absl::Status Gather(const device::RowList& list, const Pieces& pieces, std::byte* output,
                      device::Stream stream) override {
    const Choices& choices = pieces.mostly_there ? gpu_->device_choices() : gpu_->host_choices();
    // The copy engine would have to know the addresses.
    const GatherKernel kernel = KernelOf(choices.For(pieces.mean_bytes));
    return On("the gather's launch", [&] {
      return LaunchGather(kernel, list, output, gpu_->blocks(pieces.mostly_there),
                          ToStream(stream));
    });
  }

 private:
  static cudaStream_t ToStream(device::Stream stream) { return static_cast<cudaStream_t>(stream); }

  const std::byte* Find(const std::byte* data, uint64_t bytes) const {
    for (const auto& segments : sources_) {
      if (const std::byte* const found = segments->Find(data, bytes)) return found;
    }
    return nullptr;
  }

  template <typename Call>
  absl::Status On(const char* name, Call call) {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(call(), name);
  }

  const std::shared_ptr<GpuDevice> gpu_;
  const std::shared_ptr<device::SelectBackend> select_;
  const cudaStream_t stream_;  // Null: any.
  const std::shared_ptr<PinnedPool> uploads_ = std::make_shared<PinnedPool>(kKeptUploads);
  std::vector<std::shared_ptr<device::PinnedSegments>> sources_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<device::DrawBackend>> NewGpuDrawBackend(
    std::shared_ptr<GpuDevice> gpu, device::Stream stream) {
  GR_ASSIGN_OR_RETURN(auto select, MakeSelectBackend(gpu->gpu()));
  return std::make_unique<GpuDrawBackend>(std::move(gpu), std::move(select), stream);
}

}  // namespace gear_reverb::cuda
