#include "native/cuda/gpu_stream.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "native/cuda/gather.h"
#include "native/cuda/gpu_output.h"
#include "native/cuda/resources.h"
#include "native/device/sources.h"
#include "native/kernels/gather.h"
#include "native/memory/numa.h"

namespace gear_reverb::cuda {
namespace {

using device::GatherPlan;
using device::RowPiece;
using device::Sources;

constexpr size_t kMostBehind = 4;  // Gathers, besides as many as outputs are kept.

class GpuStream final : public device::GatherStream {
 public:
  GpuStream(std::shared_ptr<GpuDevice> gpu, Stream stream, Stream other, size_t kept)
      : gpu_(std::move(gpu)),
        stream_(std::move(stream)),
        other_(std::move(other)),
        kept_(kept),
        outputs_(std::make_shared<OutputPool>(kept)),
        staging_(std::make_shared<PinnedPool>(kept)) {}

  ~GpuStream() override {
    const CurrentGpu current(gpu_->gpu());
    // Sources and staging are free after this.
    for (const Stream* const each : {&stream_, &other_}) {
      NoteIfCudaError(cudaStreamSynchronize(each->get()), "cudaStreamSynchronize");
    }
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
    // In turns, so that one batch's upload and launch go on beside another's gather.
    turn_ = !turn_;
    const cudaStream_t stream = turn_ ? stream_.get() : other_.get();
    const auto start = [&](std::byte* data) {
      return StartGather(way, plan, data, host_list, data + output_bytes, gpu_->blocks(mostly_here),
                         stream);
    };
    GR_ASSIGN_OR_RETURN(auto output,
                        Start(output_bytes + list_bytes, std::move(kept), stream, start));
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
    GR_ASSIGN_OR_RETURN(auto output, Start(bytes, std::move(kept), stream_.get(), write));
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

  // Has `write` put on that stream what writes an output of `bytes` bytes; `kept` is so until that
  // is done.
  absl::StatusOr<std::shared_ptr<device::Output>> Start(
      uint64_t bytes, UnderWay kept, cudaStream_t stream,
      absl::FunctionRef<absl::Status(std::byte*)> write) {
    GR_ASSIGN_OR_RETURN(DevicePool::Buffer output, outputs_->Take(bytes));
    GR_ASSIGN_OR_RETURN(Event done, NewEvent());
    auto gathered = std::make_shared<const Event>(std::move(done));
    for (const auto& event : output.until) {
      GR_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream, event->get(), 0));
    }
    absl::Status status = write(output.data());
    if (status.ok()) {
      status = ToStatus(cudaEventRecord(gathered->get(), stream), "cudaEventRecord");
    }
    if (!status.ok()) {
      // Something may be under way: nothing is given back before it has ended.
      NoteIfCudaError(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      return status;
    }
    kept.gathered = gathered;
    under_way_.push_back(std::move(kept));
    return MakeGpuOutput(gpu_->gpu(), gpu_, gpu_->fences(), outputs_, std::move(output),
                         std::move(gathered));
  }

  // Gives back what finished gathers used. Waits where the GPU is far behind: what gathers hold
  // would have no bound otherwise.
  absl::Status Reap() {
    for (; !under_way_.empty(); under_way_.pop_front()) {
      const Event& gathered = *under_way_.front().gathered;
      if (under_way_.size() > kept_ + kMostBehind) {
        GR_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(gathered.get()));
      }
      GR_ASSIGN_OR_RETURN(const bool done, IsDone(gathered));
      if (!done) break;
      auto& host = under_way_.front().host;
      if (host.has_value()) (void)staging_->Give(*std::move(host));
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
  const Stream stream_, other_;
  bool turn_ = false;
  const size_t kept_;
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
  GR_ASSIGN_OR_RETURN(Stream other, NewStream());
  return std::make_unique<GpuStream>(std::move(gpu), std::move(stream), std::move(other), kept);
}

}  // namespace gear_reverb::cuda
