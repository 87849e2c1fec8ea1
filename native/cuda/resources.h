// Streams, events and memory of one GPU, with owners. Everything here checks CUDA's results.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/cuda/check.h"

namespace gear_reverb::cuda {

// The calling thread may do what CUDA refuses while some stream is captured in global mode
// (allocate, free, register, query), and leaves such captures alone. Nothing here depends on what
// they record.
class BesideCaptures {
 public:
  BesideCaptures()
      : status_(ToStatus(cudaThreadExchangeStreamCaptureMode(&mode_),
                         "cudaThreadExchangeStreamCaptureMode")) {}
  ~BesideCaptures() {
    if (!status_.ok()) return;
    NoteIfCudaError(cudaThreadExchangeStreamCaptureMode(&mode_),
                    "cudaThreadExchangeStreamCaptureMode");
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // Then the one before.
  const absl::Status status_;
};

// Makes a GPU the calling thread's current one, beside captures, and the one before current again
// at the end. Where it is current already, nothing is set: cudaSetDevice makes a context, and
// setting another GPU back would make one there.
class CurrentGpu {
 public:
  explicit CurrentGpu(int index) : status_(beside_.status()) {
    if (!status_.ok()) return;
    int before = -1;
    status_ = ToStatus(cudaGetDevice(&before), "cudaGetDevice");
    if (!status_.ok() || before == index) return;
    status_ = ToStatus(cudaSetDevice(index), "cudaSetDevice");
    if (status_.ok()) before_ = before;
  }
  ~CurrentGpu() {
    if (before_ >= 0) NoteIfCudaError(cudaSetDevice(before_), "cudaSetDevice");
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  const BesideCaptures beside_;
  int before_ = -1;  // -1: nothing to restore.
  absl::Status status_;
};

// Wherever the last owner goes.
inline cudaError_t FreeDevice(void* data) {
  const BesideCaptures beside;
  return cudaFree(data);
}
inline cudaError_t FreePinned(void* data) {
  const BesideCaptures beside;
  return cudaFreeHost(data);
}

// Owners of a handle, by the function that ends it.
template <typename Handle, cudaError_t (*kEnd)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) NoteIfCudaError(kEnd(handle_), "giving a handle back");
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using DeviceMemory = Owned<void*, FreeDevice>;
using PinnedMemory = Owned<void*, FreePinned>;

// All of these of the current GPU. Events take times if they are to be compared.
inline absl::StatusOr<Event> NewEvent(bool times = false) {
  cudaEvent_t event = nullptr;
  GR_RETURN_IF_CUDA_ERROR(
      cudaEventCreateWithFlags(&event, times ? cudaEventDefault : cudaEventDisableTiming));
  return Event(event);
}
// Whether all that it stands for is done. Does not wait.
inline absl::StatusOr<bool> IsDone(const Event& event) {
  const cudaError_t error = cudaEventQuery(event.get());
  if (error == cudaErrorNotReady) {
    (void)cudaGetLastError();  // It is none.
    return false;
  }
  GR_RETURN_IF_ERROR(ToStatus(error, "cudaEventQuery"));
  return true;
}
// Does not wait for the default stream, nor that for it.
inline absl::StatusOr<Stream> NewStream() {
  cudaStream_t stream = nullptr;
  GR_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}
inline absl::StatusOr<DeviceMemory> NewDeviceMemory(size_t bytes) {
  void* data = nullptr;
  GR_RETURN_IF_CUDA_ERROR(cudaMalloc(&data, bytes));
  return DeviceMemory(data);
}
// The GPU reaches it at the same address.
inline absl::StatusOr<PinnedMemory> NewPinnedMemory(size_t bytes) {
  void* data = nullptr;
  GR_RETURN_IF_CUDA_ERROR(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  return PinnedMemory(data);
}

// Memory of either kind, kept when it is idle. Thread-safe.
template <typename Memory, absl::StatusOr<Memory> (*kNew)(size_t)>
class MemoryPool {
 public:
  struct Buffer {
    Memory memory;
    size_t capacity = 0;
    std::vector<std::shared_ptr<const Event>> until;  // Work that may still use it.
    std::byte* data() const { return static_cast<std::byte*>(memory.get()); }
    // Waits for that work. To free memory does so as well, though CUDA does not promise it.
    void Settle() const {
      for (const auto& event : until) {
        NoteIfCudaError(cudaEventSynchronize(event->get()), "cudaEventSynchronize");
      }
    }
  };

  explicit MemoryPool(size_t kept) : kept_(kept) {}

  // At least `bytes` bytes.
  absl::StatusOr<Buffer> Take(size_t bytes) {
    {
      base::MutexLock lock(&mutex_);
      for (size_t i = idle_.size(); i-- > 0;) {
        if (idle_[i].capacity < bytes || idle_[i].capacity / 4 > bytes + kGranule) continue;
        Buffer taken = std::move(idle_[i]);
        idle_.erase(idle_.begin() + i);
        return taken;
      }
    }
    Buffer made;
    made.capacity = (bytes + bytes / 8 + kGranule) / kGranule * kGranule;
    absl::StatusOr<Memory> memory = kNew(made.capacity);
    if (!memory.ok()) {  // What lies idle may be what lacks.
      Drop();
      memory = kNew(made.capacity);
    }
    if (!memory.ok()) return memory.status();
    made.memory = *std::move(memory);
    return made;
  }

  // What is more than is kept comes back, for the caller to free: that waits for what uses it.
  std::optional<Buffer> Give(Buffer buffer) {
    base::MutexLock lock(&mutex_);
    idle_.push_back(std::move(buffer));
    if (idle_.size() <= kept_) return std::nullopt;
    Buffer surplus = std::move(idle_.front());
    idle_.erase(idle_.begin());
    return surplus;
  }

 private:
  static constexpr size_t kGranule = size_t{64} << 10;

  void Drop() {
    std::vector<Buffer> dropped;
    {
      base::MutexLock lock(&mutex_);
      dropped.swap(idle_);
    }
    for (const Buffer& each : dropped) each.Settle();
  }

  const size_t kept_;
  base::Mutex mutex_;
  std::vector<Buffer> idle_ ABSL_GUARDED_BY(mutex_);  // The one that came back last is the last.
};
using DevicePool = MemoryPool<DeviceMemory, NewDeviceMemory>;
using PinnedPool = MemoryPool<PinnedMemory, NewPinnedMemory>;

}  // namespace gear_reverb::cuda
