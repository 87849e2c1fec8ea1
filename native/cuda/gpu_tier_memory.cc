#include "native/cuda/gpu_tier_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "native/base/mutex.h"
#include "native/cuda/resources.h"
#include "native/memory/numa.h"

namespace gear_reverb::cuda {
namespace {

// Registered memory is read where it lies, as long as it stays registered; the rest goes through
// two pinned buffers, the one being filled while the other is on its way.
class GpuTierMemory final : public device::TierMemory {
 public:
  explicit GpuTierMemory(std::shared_ptr<GpuDevice> gpu) : gpu_(std::move(gpu)) {}
  ~GpuTierMemory() override {
    const CurrentGpu current(gpu_->gpu());
    staging_ = {};
    stream_ = {};
  }

  absl::StatusOr<std::byte*> Allocate(uint64_t bytes) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    void* data = nullptr;
    GR_RETURN_IF_CUDA_ERROR(cudaMalloc(&data, bytes));
    return static_cast<std::byte*>(data);
  }

  void Free(std::byte* data) override {
    const CurrentGpu current(gpu_->gpu());
    NoteIfCudaError(cudaFree(data), "cudaFree");
  }

  uint64_t default_limit_bytes() const override {
    const CurrentGpu current(gpu_->gpu());
    size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    NoteIfCudaError(error, "cudaMemGetInfo");
    return (error == cudaSuccess ? free : gpu_->info().memory_bytes) / 2;
  }

  void UseSegments(std::weak_ptr<device::PinnedSegments> segments) override {
    base::MutexLock lock(&mutex_);
    segments_ = std::move(segments);
  }

  absl::Status Copy(absl::Span<const kernels::Copy> copies) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    std::shared_ptr<device::PinnedSegments> segments;  // They stay registered while this is held.
    {
      base::MutexLock lock(&mutex_);
      segments = segments_.lock();
    }
    const absl::Status started = Start(copies, segments.get());
    // Whatever is under way has ended after this.
    const absl::Status ended = ToStatus(cudaStreamSynchronize(stream_.get()), "a copy to the tier");
    return started.ok() ? ended : started;
  }

 private:
  static constexpr size_t kStagingBytes = size_t{8} << 20;
  struct Staging {
    PinnedMemory memory;
    Event sent;
  };

  absl::Status Start(absl::Span<const kernels::Copy> copies, device::PinnedSegments* segments) {
    if (stream_.get() == nullptr) {
      GR_ASSIGN_OR_RETURN(stream_, NewStream());
    }
    for (const kernels::Copy& copy : copies) {
      if (segments != nullptr && segments->Find(copy.source, copy.bytes) != nullptr) {
        GR_RETURN_IF_ERROR(Send(copy.source, copy.destination, copy.bytes));
      } else {
        GR_RETURN_IF_ERROR(Stage(copy));
      }
    }
    return Flush();
  }

  absl::Status Send(const std::byte* from, std::byte* to, size_t bytes) {
    return ToStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()),
                    "cudaMemcpyAsync");
  }

  absl::Status Stage(kernels::Copy copy) {
    while (copy.bytes > 0) {
      if (filled_ == kStagingBytes) GR_RETURN_IF_ERROR(Flush());
      if (filled_ == 0) GR_RETURN_IF_ERROR(PrepareStaging());
      const size_t bytes = std::min(copy.bytes, kStagingBytes - filled_);
      auto* const place = static_cast<std::byte*>(staging_[turn_].memory.get()) + filled_;
      std::memcpy(place, copy.source, bytes);
      filled_ += bytes;
      GR_RETURN_IF_ERROR(Send(place, copy.destination, bytes));
      copy = {copy.source + bytes, copy.destination + bytes, copy.bytes - bytes};
    }
    return absl::OkStatus();
  }

  // Makes the buffer whose turn it is, or waits until it has been read.
  absl::Status PrepareStaging() {
    Staging& staging = staging_[turn_];
    if (staging.memory.get() == nullptr) {
      GR_ASSIGN_OR_RETURN(staging.sent, NewEvent());
      const memory::NodeOfThread near(gpu_->info().numa_node);
      GR_ASSIGN_OR_RETURN(staging.memory, NewPinnedMemory(kStagingBytes));
      return absl::OkStatus();
    }
    return ToStatus(cudaEventSynchronize(staging.sent.get()), "cudaEventSynchronize");
  }

  // The buffer is full enough: it is the other one's turn.
  absl::Status Flush() {
    if (std::exchange(filled_, 0) == 0) return absl::OkStatus();
    Staging& staging = staging_[turn_];
    turn_ = (turn_ + 1) % staging_.size();
    return ToStatus(cudaEventRecord(staging.sent.get(), stream_.get()), "cudaEventRecord");
  }

  const std::shared_ptr<GpuDevice> gpu_;
  base::Mutex mutex_;
  std::weak_ptr<device::PinnedSegments> segments_ ABSL_GUARDED_BY(mutex_);
  // Of the one thread that copies.
  Stream stream_;
  std::array<Staging, 2> staging_;
  size_t turn_ = 0, filled_ = 0;
};

}  // namespace

std::unique_ptr<device::TierMemory> NewGpuTierMemory(std::shared_ptr<GpuDevice> gpu) {
  return std::make_unique<GpuTierMemory>(std::move(gpu));
}

}  // namespace gear_reverb::cuda
