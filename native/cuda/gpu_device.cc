#include "native/cuda/gpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "native/base/environment.h"
#include "native/cuda/draw_backend.h"
#include "native/cuda/gpu.h"
#include "native/cuda/gpu_stream.h"
#include "native/cuda/gpu_tier_memory.h"
#include "native/cuda/resources.h"

namespace gear_reverb::cuda {
namespace {

// GEAR_REVERB_PINNED_BYTES, or half of the machine's memory.
uint64_t RegistrationLimit() {
  const int64_t half = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
  return base::IntegerSetting("GEAR_REVERB_PINNED_BYTES", 0).value_or(half);
}

// The GPUs in use. An entry dies with its last user; what was measured stays.
struct OpenGpus {
  base::Mutex mutex;
  std::vector<std::weak_ptr<GpuDevice>> gpus ABSL_GUARDED_BY(mutex);
  std::map<int, MeasuredGpu> measured ABSL_GUARDED_BY(mutex);  // By index.
};
OpenGpus& TheOpenGpus() {
  static auto& open = *new OpenGpus;
  return open;
}

// What is registered, which is so with all GPUs at once, by base address: how many users it has.
struct Registrations {
  base::Mutex mutex;  // Also held while CUDA registers, so that nobody does so twice.
  std::map<std::byte*, int> users ABSL_GUARDED_BY(mutex);

  void Drop(std::byte* base) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = users.find(base);
    if (--found->second > 0) return;
    users.erase(found);
    NoteIfCudaError(cudaHostUnregister(base), "cudaHostUnregister");
  }
};
Registrations& TheRegistrations() {
  static auto& registrations = *new Registrations;
  return registrations;
}

// Of the current GPU.
MeasuredGpu Measure(int major, const GatherBlocks& blocks) {
  MeasuredGpu measured;
  measured.error.clear();
  const char* const text = std::getenv("GEAR_REVERB_MEASURE");
  if (text != nullptr && std::string_view(text) == "0") {
    measured.error = "GEAR_REVERB_MEASURE is 0.";
    return measured;
  }
  const auto choose = [&](Place place, Choices* choices) {
    auto chosen = ChooseWays(place, major, blocks);
    if (chosen.ok()) {
      *choices = *std::move(chosen);
    } else {
      measured.error = std::string(chosen.status().message());
    }
  };
  choose(Place::kPinnedHost, &measured.from_host);
  choose(Place::kDevice, &measured.from_device);
  return measured;
}

}  // namespace

absl::StatusOr<const std::byte*> CudaRegistrar::Register(std::byte* base, size_t bytes,
                                                         bool read_only) {
  if (read_only && !takes_read_only_) {
    return absl::UnimplementedError("The GPU's driver registers no memory that is read-only.");
  }
  const CurrentGpu current(gpu_);
  GR_RETURN_IF_ERROR(current.status());
  const unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable |
                         (read_only ? cudaHostRegisterReadOnly : 0);
  Registrations& all = TheRegistrations();
  base::MutexLock lock(&all.mutex);
  if (all.users.count(base) == 0) {
    GR_RETURN_IF_CUDA_ERROR(cudaHostRegister(base, bytes, flags));
  }
  ++all.users[base];
  void* device = nullptr;
  const cudaError_t error = cudaHostGetDevicePointer(&device, base, 0);
  if (error != cudaSuccess) all.Drop(base);
  GR_RETURN_IF_ERROR(ToStatus(error, "cudaHostGetDevicePointer"));
  return static_cast<const std::byte*>(device);
}

void CudaRegistrar::Unregister(std::byte* base) {
  const CurrentGpu current(gpu_);
  Registrations& all = TheRegistrations();
  base::MutexLock lock(&all.mutex);
  all.Drop(base);
}

GpuDevice::GpuDevice(GpuInfo info, const GatherBlocks& blocks, MeasuredGpu measured)
    : info_(std::move(info)),
      blocks_(blocks),
      measured_(std::move(measured)),
      budget_(std::make_shared<device::RegistrationBudget>(RegistrationLimit())) {}

absl::StatusOr<std::unique_ptr<device::GatherStream>> GpuDevice::NewStream(size_t kept) {
  return NewGpuStream(shared_from_this(), kept);
}

absl::StatusOr<std::unique_ptr<device::DrawBackend>> GpuDevice::NewDrawBackend(
    device::Stream stream) {
  return NewGpuDrawBackend(shared_from_this(), stream);
}

std::shared_ptr<device::DeviceTier> GpuDevice::TierOf(const std::shared_ptr<table::Table>& table) {
  return tiers_.Of(table, [this] { return NewGpuTierMemory(shared_from_this()); });
}

void GpuDevice::Count(uint64_t gathered_bytes, uint64_t staged_bytes, uint64_t device_bytes) {
  batches_.fetch_add(1, std::memory_order_relaxed);
  gathered_bytes_.fetch_add(gathered_bytes, std::memory_order_relaxed);
  staged_bytes_.fetch_add(staged_bytes, std::memory_order_relaxed);
  device_bytes_.fetch_add(device_bytes, std::memory_order_relaxed);
}

device::DeviceStats GpuDevice::stats() const {
  device::DeviceStats stats;
  stats.name = absl::StrCat("cuda:", info_.index);
  stats.link_bytes_per_second = measured_.from_host.copy_bytes_per_second;
  stats.choices = measured_.from_host.classes;
  stats.copy_bytes_per_second = measured_.from_device.copy_bytes_per_second;
  stats.device_choices = measured_.from_device.classes;
  stats.choices_error = measured_.error;
  stats.batches = batches_.load(std::memory_order_relaxed);
  stats.gathered_bytes = gathered_bytes_.load(std::memory_order_relaxed);
  stats.staged_bytes = staged_bytes_.load(std::memory_order_relaxed);
  stats.device_bytes = device_bytes_.load(std::memory_order_relaxed);
  stats.tiers = tiers_.stats();
  stats.registered_bytes = budget_->used_bytes();
  stats.registered_limit_bytes = budget_->limit_bytes();
  stats.registration_error = budget_->last_error();
  return stats;
}

std::shared_ptr<device::PinnedSegments> GpuDevice::SegmentsOf(
    std::shared_ptr<device::SegmentSource> source) {
  base::MutexLock lock(&mutex_);
  std::erase_if(segments_, [](const auto& segments) { return segments.expired(); });
  for (const auto& known : segments_) {
    auto segments = known.lock();
    if (segments != nullptr && segments->source().memory() == source->memory()) return segments;
  }
  source->PreferNode(info_.numa_node);
  auto segments = std::make_shared<device::PinnedSegments>(
      std::move(source), std::make_shared<CudaRegistrar>(info_.index, info_.registers_read_only),
      budget_);
  segments_.push_back(segments);
  return segments;
}

absl::StatusOr<std::shared_ptr<device::Device>> OpenGpu(int index) {
  GR_ASSIGN_OR_RETURN(std::vector<GpuInfo> infos, Gpus());
  if (index < 0 || index >= static_cast<int>(infos.size())) {
    return base::InvalidArgument("There is no GPU cuda:", index, ": this machine has ",
                                 infos.size(), ".");
  }
  GR_RETURN_IF_ERROR(CheckCapability(index));
  OpenGpus& open = TheOpenGpus();
  base::MutexLock lock(&open.mutex);
  std::erase_if(open.gpus, [](const auto& gpu) { return gpu.expired(); });
  for (const auto& gpu : open.gpus) {
    const auto found = gpu.lock();
    if (found != nullptr && found->gpu() == index) return found;
  }
  const CurrentGpu current(index);
  GR_RETURN_IF_ERROR(current.status());
  GatherBlocks blocks;
  GR_RETURN_IF_CUDA_ERROR(PrepareGather(&blocks));
  MeasuredGpu& measured = open.measured[index];
  // What could not be measured the last time may be now.
  if (!measured.error.empty()) measured = Measure(infos[index].major, blocks);
  auto made = std::make_shared<GpuDevice>(infos[index], blocks, measured);
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
