#include "native/cuda/gpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "native/cuda/draw_backend.h"
#include "native/cuda/gpu.h"
#include "native/cuda/gpu_stream.h"
#include "native/cuda/resources.h"

namespace gear_reverb::cuda {
namespace {

// GEAR_REVERB_PINNED_BYTES, or half of the machine's memory.
uint64_t RegistrationLimit() {
  uint64_t bytes;
  const char* const text = std::getenv("GEAR_REVERB_PINNED_BYTES");
  if (text != nullptr && absl::SimpleAtoi(text, &bytes)) return bytes;
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
}

// The GPUs in use. An entry dies with its last user.
struct OpenGpus {
  base::Mutex mutex;
  std::vector<std::weak_ptr<GpuDevice>> gpus ABSL_GUARDED_BY(mutex);
};
OpenGpus& TheOpenGpus() {
  static auto& open = *new OpenGpus;
  return open;
}

}  // namespace

absl::StatusOr<const std::byte*> CudaRegistrar::Register(std::byte* base, size_t bytes) {
  const CurrentGpu current(gpu_);
  GR_RETURN_IF_ERROR(current.status());
  GR_RETURN_IF_CUDA_ERROR(
      cudaHostRegister(base, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
  void* device = nullptr;
  const cudaError_t error = cudaHostGetDevicePointer(&device, base, 0);
  if (error != cudaSuccess) Unregister(base);
  GR_RETURN_IF_ERROR(ToStatus(error, "cudaHostGetDevicePointer"));
  return static_cast<const std::byte*>(device);
}

void CudaRegistrar::Unregister(std::byte* base) {
  const CurrentGpu current(gpu_);
  (void)cudaHostUnregister(base);
}

GpuDevice::GpuDevice(GpuInfo info, Choices choices, std::string choices_error)
    : info_(std::move(info)),
      choices_(std::move(choices)),
      choices_error_(std::move(choices_error)),
      budget_(std::make_shared<device::RegistrationBudget>(RegistrationLimit())) {}

absl::StatusOr<std::unique_ptr<device::GatherStream>> GpuDevice::NewStream(size_t kept) {
  return NewGpuStream(shared_from_this(), kept);
}

absl::StatusOr<std::unique_ptr<device::DrawBackend>> GpuDevice::NewDrawBackend() {
  return NewGpuDrawBackend(shared_from_this());
}

void GpuDevice::Count(uint64_t gathered_bytes, uint64_t staged_bytes) {
  batches_.fetch_add(1, std::memory_order_relaxed);
  gathered_bytes_.fetch_add(gathered_bytes, std::memory_order_relaxed);
  staged_bytes_.fetch_add(staged_bytes, std::memory_order_relaxed);
}

device::DeviceStats GpuDevice::stats() const {
  device::DeviceStats stats;
  stats.name = absl::StrCat("cuda:", info_.index);
  stats.link_bytes_per_second = choices_.link_bytes_per_second;
  stats.choices = choices_.classes;
  stats.choices_error = choices_error_;
  stats.batches = batches_.load(std::memory_order_relaxed);
  stats.gathered_bytes = gathered_bytes_.load(std::memory_order_relaxed);
  stats.staged_bytes = staged_bytes_.load(std::memory_order_relaxed);
  stats.registered_bytes = budget_->used_bytes();
  stats.registered_limit_bytes = budget_->limit_bytes();
  stats.registration_error = budget_->last_error();
  return stats;
}

std::shared_ptr<device::PinnedSegments> GpuDevice::SegmentsOf(
    std::shared_ptr<memory::Arena> arena) {
  base::MutexLock lock(&mutex_);
  std::erase_if(arenas_, [](const OfArena& of) { return of.segments.expired(); });
  for (const OfArena& of : arenas_) {
    auto segments = of.segments.lock();
    if (segments != nullptr && of.arena.lock() == arena) return segments;
  }
  auto segments = std::make_shared<device::PinnedSegments>(
      arena, std::make_shared<CudaRegistrar>(info_.index), budget_);
  arenas_.push_back({arena, segments});
  return segments;
}

absl::StatusOr<std::shared_ptr<device::Device>> OpenGpu(int index) {
  GR_ASSIGN_OR_RETURN(std::vector<GpuInfo> infos, Gpus());
  if (index < 0 || index >= static_cast<int>(infos.size())) {
    return base::InvalidArgument("There is no GPU cuda:", index, ": this machine has ",
                                 infos.size(), ".");
  }
  OpenGpus& open = TheOpenGpus();
  base::MutexLock lock(&open.mutex);
  std::erase_if(open.gpus, [](const auto& gpu) { return gpu.expired(); });
  for (const auto& gpu : open.gpus) {
    const auto found = gpu.lock();
    if (found != nullptr && found->gpu() == index) return found;
  }
  const CurrentGpu current(index);
  GR_RETURN_IF_ERROR(current.status());
  GR_RETURN_IF_CUDA_ERROR(PrepareGather());
  absl::StatusOr<Choices> choices = ChooseWays(infos[index].major, infos[index].multiprocessors);
  auto made =
      std::make_shared<GpuDevice>(infos[index], choices.ok() ? *choices : UnmeasuredChoices(),
                                  std::string(choices.status().message()));
  open.gpus.push_back(made);
  return made;
}

std::vector<device::DeviceStats> StatsOfOpenGpus() {
  std::vector<device::DeviceStats> stats;
  OpenGpus& open = TheOpenGpus();
  base::MutexLock lock(&open.mutex);
  for (const auto& weak : open.gpus) {
    if (const auto gpu = weak.lock()) stats.push_back(gpu->stats());
  }
  return stats;
}

}  // namespace gear_reverb::cuda
