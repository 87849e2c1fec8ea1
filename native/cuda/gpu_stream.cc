#include "native/cuda/gpu_stream.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "native/cuda/gather.h"
#include "native/cuda/resources.h"
#include "native/device/sources.h"
#include "native/kernels/gather.h"
#include "native/memory/numa.h"

namespace gear_reverb::cuda {
namespace {

using device::GatherPlan;
using device::RowPiece;
using device::Sources;

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

// In a list of streams: one that is not known.
constexpr cudaStream_t kAnyStream = nullptr;

// An event after all that the stream has been given; false while that cannot be told.
bool Mark(cudaStream_t stream, std::vector<Event>* marks) {
  if (stream != kAnyStream) {
    const absl::StatusOr<bool> captured = IsCaptured(stream);
    if (captured.ok() && *captured) return false;
    absl::StatusOr<Event> event = NewEvent();
    if (captured.ok() && event.ok() && cudaEventRecord(event->get(), stream) == cudaSuccess) {
      marks->push_back(*std::move(event));
      return true;
    }
  }
  // A stream may also be gone. Whatever it did is done after this.
  (void)cudaGetLastError();
  const bool done = cudaDeviceSynchronize() == cudaSuccess;
  (void)cudaGetLastError();
  return done;
}

// The memory of outputs: it is used again after what its streams had to do. All of it with the GPU
// current. Thread-safe.
class OutputPool {
 public:
  explicit OutputPool(size_t kept) : pool_(kept) {}

  absl::StatusOr<DevicePool::Buffer> Take(size_t bytes) {
    std::vector<Held> held;
    {
      base::MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (Held& each : held) Give(std::move(each.buffer), std::move(each.streams));
    return pool_.Take(bytes);
  }

  // Where one of the streams is being captured, the memory waits for a later call.
  void Give(DevicePool::Buffer buffer, std::vector<cudaStream_t> streams) {
    std::erase_if(streams, [&](cudaStream_t stream) { return Mark(stream, &buffer.until); });
    if (streams.empty()) {
      pool_.Give(std::move(buffer));
      return;
    }
    base::MutexLock lock(&mutex_);
    held_.push_back({std::move(buffer), std::move(streams)});
  }

 private:
  struct Held {
    DevicePool::Buffer buffer;
    std::vector<cudaStream_t> streams;
  };
  DevicePool pool_;
  base::Mutex mutex_;
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);
};

class GpuOutput final : public device::Output {
 public:
  GpuOutput(std::shared_ptr<GpuDevice> gpu, std::shared_ptr<OutputPool> pool,
            DevicePool::Buffer buffer, std::shared_ptr<const Event> gathered)
      : gpu_(std::move(gpu)),
        pool_(std::move(pool)),
        buffer_(std::move(buffer)),
        gathered_(std::move(gathered)) {}

  ~GpuOutput() override {
    const CurrentGpu current(gpu_->gpu());
    buffer_.until.clear();
    pool_->Give(std::move(buffer_), std::move(shared_with_));
  }

  std::byte* data() const override { return buffer_.data(); }

  absl::Status ShareWith(uintptr_t handle) override {
    auto stream = reinterpret_cast<cudaStream_t>(handle);
    GR_RETURN_IF_ERROR(stream == kAnyStream ? Wait() : LendTo(stream));
    // That handle is another stream in every thread. The legacy stream's events come after the work
    // of all of these, and it is the same in the thread where the output goes.
    if (stream == cudaStreamPerThread) stream = cudaStreamLegacy;
    if (std::find(shared_with_.begin(), shared_with_.end(), stream) == shared_with_.end()) {
      shared_with_.push_back(stream);
    }
    return absl::OkStatus();
  }

  absl::Status LendTo(device::Stream handle) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    const auto stream = static_cast<cudaStream_t>(handle);
    GR_ASSIGN_OR_RETURN(const bool captured, IsCaptured(stream));
    if (captured) return Wait();  // A capture cannot wait for work outside of it.
    return ToStatus(cudaStreamWaitEvent(stream, gathered_->get(), 0), "cudaStreamWaitEvent");
  }

  absl::Status Wait() override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(cudaEventSynchronize(gathered_->get()), "the gather");
  }

 private:
  const std::shared_ptr<GpuDevice> gpu_;
  const std::shared_ptr<OutputPool> pool_;
  DevicePool::Buffer buffer_;
  const std::shared_ptr<const Event> gathered_;
  std::vector<cudaStream_t> shared_with_;
};

class GpuStream final : public device::GatherStream {
 public:
  GpuStream(std::shared_ptr<GpuDevice> gpu, Stream stream, size_t kept)
      : gpu_(std::move(gpu)),
        stream_(std::move(stream)),
        outputs_(std::make_shared<OutputPool>(kept)),
        staging_(std::make_shared<PinnedPool>(kept)) {}

  ~GpuStream() override {
    const CurrentGpu current(gpu_->gpu());
    // Sources and staging are free after this.
    NoteIfCudaError(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }

  void SetSources(std::shared_ptr<device::SegmentSource> memory,
                  std::shared_ptr<device::DeviceTier> tier) override {
    std::shared_ptr<device::PinnedSegments> segments;
    if (memory != nullptr) segments = gpu_->SegmentsOf(std::move(memory));
    if (tier != nullptr) tier->UseSegments(segments);
    sources_ = std::make_shared<const Sources>(std::move(tier), std::move(segments));
  }

  absl::StatusOr<std::shared_ptr<device::Output>> Gather(
      GatherPlan plan, uint64_t bytes, std::shared_ptr<const void> lease) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    GR_RETURN_IF_ERROR(Reap());
    Sources::Resolved resolved = sources_->Resolve(&plan);
    const uint64_t staged_bytes = StagingBytes(plan, resolved.not_found);
    const size_t list_bytes = (ListBytes(plan) + 127) / 128 * 128;
    const uint64_t output_bytes = (bytes + 127) / 128 * 128;

    // Host: the list, then what is staged. Device: the output, then the list.
    GR_ASSIGN_OR_RETURN(PinnedPool::Buffer host, TakeStaging(list_bytes + staged_bytes));
    Stage(&plan, resolved.not_found, host.data() + list_bytes);
    std::byte* const host_list = host.data();
    const uint64_t pieces = std::max<uint64_t>(plan.pieces().size(), 1);
    const bool mostly_here = resolved.device_bytes > plan.source_bytes() / 2;
    const Choices& choices = mostly_here ? gpu_->device_choices() : gpu_->host_choices();
    const GatherWay way = choices.For(plan.source_bytes() / pieces);
    UnderWay kept{nullptr, std::move(host), std::move(lease), std::move(resolved.copies), sources_};
    GR_ASSIGN_OR_RETURN(auto output,
                        Start(output_bytes + list_bytes, std::move(kept), [&](std::byte* data) {
                          return StartGather(way, plan, data, host_list, data + output_bytes,
                                             gpu_->blocks(), stream_.get());
                        }));
    gpu_->Count(plan.source_bytes(), staged_bytes, resolved.device_bytes);
    return output;
  }

  device::Stream stream() const override { return stream_.get(); }

  absl::StatusOr<std::shared_ptr<device::Output>> Write(
      uint64_t bytes, uint64_t source_bytes, std::shared_ptr<const void> lease,
      absl::FunctionRef<absl::Status(std::byte*)> write) override {
    const CurrentGpu current(gpu_->gpu());
    GR_RETURN_IF_ERROR(current.status());
    GR_RETURN_IF_ERROR(Reap());
    UnderWay kept;
    kept.lease = std::move(lease);
    GR_ASSIGN_OR_RETURN(auto output, Start(bytes, std::move(kept), write));
    if (source_bytes > 0) gpu_->Count(source_bytes, 0, 0);
    return output;
  }

 private:
  struct UnderWay {
    std::shared_ptr<const Event> gathered;
    std::optional<PinnedPool::Buffer> host;
    std::shared_ptr<const void> lease;
    std::vector<device::DeviceCopyPtr> copies;
    std::shared_ptr<const Sources> sources;  // What it reads stays registered.
  };

  // Has `write` put on the stream what writes an output of `bytes` bytes; `kept` is so until that
  // is done.
  absl::StatusOr<std::shared_ptr<device::Output>> Start(
      uint64_t bytes, UnderWay kept, absl::FunctionRef<absl::Status(std::byte*)> write) {
    GR_ASSIGN_OR_RETURN(DevicePool::Buffer output, outputs_->Take(bytes));
    GR_ASSIGN_OR_RETURN(Event done, NewEvent());
    auto gathered = std::make_shared<const Event>(std::move(done));
    for (const Event& event : output.until) {
      GR_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_.get(), event.get(), 0));
    }
    absl::Status status = write(output.data());
    if (status.ok()) {
      status = ToStatus(cudaEventRecord(gathered->get(), stream_.get()), "cudaEventRecord");
    }
    if (!status.ok()) {
      // Something may be under way: nothing is given back before it has ended.
      NoteIfCudaError(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
      return status;
    }
    kept.gathered = gathered;
    under_way_.push_back(std::move(kept));
    return std::make_shared<GpuOutput>(gpu_, outputs_, std::move(output), std::move(gathered));
  }

  // Gives back what finished gathers used.
  absl::Status Reap() {
    for (; !under_way_.empty(); under_way_.pop_front()) {
      GR_ASSIGN_OR_RETURN(const bool done, IsDone(*under_way_.front().gathered));
      if (!done) break;
      auto& host = under_way_.front().host;
      if (host.has_value()) staging_->Give(*std::move(host));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PinnedPool::Buffer> TakeStaging(uint64_t bytes) {
    const memory::NodeOfThread near(gpu_->info().numa_node);
    return staging_->Take(bytes);
  }

  static uint64_t StagedBytes(const GatherPlan& plan, size_t piece) {
    return (plan.piece_bytes(piece) + 15) / 16 * 16;
  }

  static uint64_t StagingBytes(const GatherPlan& plan, const std::vector<size_t>& to_stage) {
    uint64_t bytes = 0;
    for (const size_t piece : to_stage) bytes += StagedBytes(plan, piece);
    return bytes;
  }

  // Copies what is to be staged to `staging`, and has the plan read it there.
  static void Stage(GatherPlan* plan, const std::vector<size_t>& to_stage, std::byte* staging) {
    std::vector<kernels::Copy> copies;
    copies.reserve(to_stage.size());
    for (const size_t index : to_stage) {
      RowPiece& piece = plan->mutable_piece(index);
      copies.push_back({piece.data, staging, plan->piece_bytes(index)});
      piece.data = staging;
      staging += StagedBytes(*plan, index);
    }
    kernels::Gather(copies);
  }

  const std::shared_ptr<GpuDevice> gpu_;
  const Stream stream_;
  const std::shared_ptr<OutputPool> outputs_;
  const std::shared_ptr<PinnedPool> staging_;
  std::shared_ptr<const Sources> sources_ = std::make_shared<const Sources>();
  std::deque<UnderWay> under_way_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<device::GatherStream>> NewGpuStream(std::shared_ptr<GpuDevice> gpu,
                                                                   size_t kept) {
  const CurrentGpu current(gpu->gpu());
  GR_RETURN_IF_ERROR(current.status());
  GR_ASSIGN_OR_RETURN(Stream stream, NewStream());
  return std::make_unique<GpuStream>(std::move(gpu), std::move(stream), kept);
}

}  // namespace gear_reverb::cuda
