#include "native/cuda/gpu_output.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "native/memory/fork_guard.h"

namespace gear_reverb::cuda {
namespace {

// Whether what is put on the stream now would be recorded by a capture, or break one: it is being
// captured, or it is the legacy stream and one that waits for it is.
absl::StatusOr<bool> IsCaptured(cudaStream_t stream) {
  cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &captured);
  if (error == cudaErrorStreamCaptureImplicit) {
    (void)cudaGetLastError();
    return true;
  }
  GR_RETURN_IF_ERROR(ToStatus(error, "cudaStreamIsCapturing"));
  return captured != cudaStreamCaptureStatusNone;
}

// An event after all that the stream has been given; an error if the stream is gone.
absl::StatusOr<std::shared_ptr<const Event>> Mark(cudaStream_t stream) {
  GR_ASSIGN_OR_RETURN(Event event, NewEvent());
  GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(event.get(), stream));
  return std::make_shared<const Event>(std::move(event));
}

class GpuOutput final : public device::Output {
 public:
  GpuOutput(int gpu, std::shared_ptr<const void> keep, std::shared_ptr<Fences> fences,
            std::shared_ptr<OutputPool> pool, DevicePool::Buffer buffer,
            std::shared_ptr<const Event> gathered)
      : gpu_(gpu),
        keep_(std::move(keep)),
        fences_(std::move(fences)),
        pool_(std::move(pool)),
        buffer_(std::move(buffer)),
        gathered_(std::move(gathered)) {}

  ~GpuOutput() override {
    if (memory::ForkGeneration() != generation_) {
      Leak();
      return;
    }
    const CurrentGpu current(gpu_);
    buffer_.until.assign(1, std::move(gathered_));
    base::MutexLock lock(&mutex_);
    if (fenced_) {
      fences_->Add(std::move(pool_), std::move(buffer_), std::move(shared_with_), shared_with_any_);
    } else {
      pool_->Give(std::move(buffer_), std::move(shared_with_), shared_with_any_);
    }
  }

  std::byte* data() const override { return buffer_.data(); }

  absl::Status ShareWith(uintptr_t handle) override {
    if (handle == 0) {
      GR_RETURN_IF_ERROR(Wait());
      base::MutexLock lock(&mutex_);
      shared_with_any_ = true;
      return absl::OkStatus();
    }
    auto stream = reinterpret_cast<cudaStream_t>(handle);
    GR_RETURN_IF_ERROR(LendTo(stream));
    // That handle is another stream in every thread. The legacy stream's events come after the work
    // of all of these, and it is the same in the thread where the output goes.
    if (stream == cudaStreamPerThread) stream = cudaStreamLegacy;
    base::MutexLock lock(&mutex_);
    if (std::find(shared_with_.begin(), shared_with_.end(), stream) == shared_with_.end()) {
      shared_with_.push_back(stream);
    }
    return absl::OkStatus();
  }

  absl::Status LendTo(device::Stream handle) override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    const auto stream = static_cast<cudaStream_t>(handle);
    GR_ASSIGN_OR_RETURN(const bool captured, IsCaptured(stream));
    if (captured) return Wait();  // A capture cannot wait for work outside of it.
    return ToStatus(cudaStreamWaitEvent(stream, gathered_->get(), 0), "cudaStreamWaitEvent");
  }

  absl::Status Wait() override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(cudaEventSynchronize(gathered_->get()), "the gather");
  }

  void WantFence() override {
    base::MutexLock lock(&mutex_);
    fenced_ = true;
  }
  bool fence_wanted() const override { return fences_->wanted(); }
  absl::Status PassFence(absl::FunctionRef<void(device::Stream)> wait) override {
    const CurrentGpu current(gpu_);
    GR_RETURN_IF_ERROR(current.status());
    return fences_->Pass(wait);
  }

 private:
  // In the child of a fork there is no GPU, and locks are as they happened to be.
  void Leak() {
    new auto(std::make_tuple(std::move(keep_), std::move(fences_), std::move(pool_),
                             std::move(buffer_), std::move(gathered_)));
  }

  const int gpu_;
  const uint64_t generation_ = memory::ForkGeneration();
  std::shared_ptr<const void> keep_;
  std::shared_ptr<Fences> fences_;
  std::shared_ptr<OutputPool> pool_;
  DevicePool::Buffer buffer_;
  std::shared_ptr<const Event> gathered_;
  base::Mutex mutex_;  // Arrays of a batch may be handed over by several threads.
  std::vector<cudaStream_t> shared_with_ ABSL_GUARDED_BY(mutex_);
  bool shared_with_any_ ABSL_GUARDED_BY(mutex_) = false;
  bool fenced_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<DevicePool::Buffer> OutputPool::Take(size_t bytes) {
  std::vector<Held> held;
  std::vector<DevicePool::Buffer> to_free;
  {
    base::MutexLock lock(&mutex_);
    held.swap(held_);
    to_free.swap(to_free_);
  }
  for (const DevicePool::Buffer& each : to_free) each.Settle();
  to_free.clear();
  for (Held& each : held) Give(std::move(each.buffer), std::move(each.streams), false);
  return pool_.Take(bytes);
}

void OutputPool::Give(DevicePool::Buffer buffer, std::vector<cudaStream_t> streams, bool unknown) {
  std::vector<cudaStream_t> captured;
  for (const cudaStream_t stream : streams) {
    const absl::StatusOr<bool> is_captured = IsCaptured(stream);
    if (is_captured.ok() && *is_captured) {
      captured.push_back(stream);
      continue;
    }
    auto mark = is_captured.ok() ? Mark(stream) : is_captured.status();
    (void)cudaGetLastError();
    if (mark.ok()) {
      buffer.until.push_back(*std::move(mark));
    } else {
      unknown = true;
    }
  }
  if (!unknown && captured.empty()) {
    std::optional<DevicePool::Buffer> surplus = pool_.Give(std::move(buffer));
    if (!surplus.has_value()) return;
    buffer = *std::move(surplus);
  }
  base::MutexLock lock(&mutex_);
  if (captured.empty() || unknown) {
    to_free_.push_back(std::move(buffer));
  } else {
    held_.push_back({std::move(buffer), std::move(captured)});
  }
}

void Fences::Add(std::shared_ptr<OutputPool> pool, DevicePool::Buffer buffer,
                 std::vector<cudaStream_t> streams, bool unknown) {
  base::MutexLock lock(&mutex_);
  waiting_.push_back({std::move(pool), std::move(buffer), std::move(streams), unknown});
}

bool Fences::wanted() {
  base::MutexLock lock(&mutex_);
  return !waiting_.empty();
}

void Fences::PutBack(std::vector<Waiting> waiting) {
  base::MutexLock lock(&mutex_);
  std::move(waiting.begin(), waiting.end(), std::back_inserter(waiting_));
}

absl::StatusOr<cudaStream_t> Fences::TheStream() {
  base::MutexLock lock(&mutex_);
  if (stream_.get() == nullptr) {
    GR_ASSIGN_OR_RETURN(stream_, NewStream());
  }
  return stream_.get();
}

absl::Status Fences::Pass(absl::FunctionRef<void(device::Stream)> wait) {
  GR_ASSIGN_OR_RETURN(const cudaStream_t stream, TheStream());
  std::vector<Waiting> waiting;
  {
    base::MutexLock lock(&mutex_);
    waiting.swap(waiting_);
  }
  try {
    wait(stream);
  } catch (...) {
    PutBack(std::move(waiting));
    throw;
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    auto mark = Mark(stream);
    if (!mark.ok()) {
      waiting.erase(waiting.begin(), waiting.begin() + i);
      PutBack(std::move(waiting));
      return mark.status();
    }
    Waiting& each = waiting[i];
    each.buffer.until.push_back(*std::move(mark));
    each.pool->Give(std::move(each.buffer), std::move(each.streams), each.unknown);
  }
  return absl::OkStatus();
}

std::shared_ptr<device::Output> MakeGpuOutput(int gpu, std::shared_ptr<const void> keep,
                                              std::shared_ptr<Fences> fences,
                                              std::shared_ptr<OutputPool> pool,
                                              DevicePool::Buffer buffer,
                                              std::shared_ptr<const Event> gathered) {
  return std::make_shared<GpuOutput>(gpu, std::move(keep), std::move(fences), std::move(pool),
                                     std::move(buffer), std::move(gathered));
}

}  // namespace gear_reverb::cuda
