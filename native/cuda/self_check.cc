#include <cstring>
#include <numeric>
#include <random>

#include "native/cuda/gpu.h"
#include "native/cuda/gpu_device.h"
#include "native/cuda/gpu_tier_memory.h"
#include "native/cuda/measure.h"
#include "native/cuda/resources.h"
#include "native/device/gather_cases.h"

namespace gear_reverb::cuda {
namespace {

using device::CaseSize;
using device::GatherCase;
using device::GatherPlan;

// Copies `bytes` back from the GPU, once `output` has been written.
absl::StatusOr<std::vector<std::byte>> Fetch(const std::byte* output, size_t bytes) {
  std::vector<std::byte> fetched(bytes);
  GR_RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize());
  GR_RETURN_IF_CUDA_ERROR(cudaMemcpy(fetched.data(), output, bytes, cudaMemcpyDeviceToHost));
  return fetched;
}

// One way of gathering, from one place, against the expected bytes.
absl::StatusOr<std::string> CheckWay(GatherWay way, Place place, const GatherCase& made,
                                     const GatherBlocks& held) {
  // A word more, since kernels load whole words.
  const size_t source_bytes = made.source.size() + 16;
  GR_ASSIGN_OR_RETURN(const PinnedMemory host, NewPinnedMemory(source_bytes));
  std::memcpy(host.get(), made.source.data(), made.source.size());
  GR_ASSIGN_OR_RETURN(const DeviceMemory device, NewDeviceMemory(source_bytes));
  GR_RETURN_IF_CUDA_ERROR(
      cudaMemcpy(device.get(), made.source.data(), made.source.size(), cudaMemcpyHostToDevice));
  auto* const sources =
      static_cast<const std::byte*>(place == Place::kDevice ? device.get() : host.get());
  GatherPlan plan = made.plan;
  for (size_t i = 0; i < plan.pieces().size(); ++i) {
    device::RowPiece& piece = plan.mutable_piece(i);
    piece.data = sources + (piece.data - made.source.data());
  }
  const size_t bytes = made.expected.size();
  GR_ASSIGN_OR_RETURN(const DeviceMemory output, NewDeviceMemory(bytes));
  GR_RETURN_IF_CUDA_ERROR(cudaMemset(output.get(), static_cast<int>(device::kPoison), bytes));
  GR_ASSIGN_OR_RETURN(const PinnedMemory host_list, NewPinnedMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const DeviceMemory device_list, NewDeviceMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const Stream stream, NewStream());
  GR_RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize());
  GR_RETURN_IF_ERROR(StartGather(way, plan, static_cast<std::byte*>(output.get()),
                                 static_cast<std::byte*>(host_list.get()),
                                 static_cast<std::byte*>(device_list.get()),
                                 place == Place::kDevice ? held : held.ForHost(), stream.get()));
  GR_ASSIGN_OR_RETURN(const auto fetched, Fetch(static_cast<std::byte*>(output.get()), bytes));
  const std::string difference = Difference(made, fetched);
  if (difference.empty()) return difference;
  return absl::StrCat(Name(way), " from ", place == Place::kDevice ? "device" : "host", ": ",
                      difference);
}

// The way of a batch: staged sources, pooled memory that is used again. Poison is not to be had
// here, so only what rows write is compared.
absl::StatusOr<std::string> CheckStream(device::GatherStream& stream, const GatherCase& made) {
  const size_t bytes = made.expected.size();
  GR_ASSIGN_OR_RETURN(const auto output, stream.Gather(made.plan, bytes, nullptr));
  GR_RETURN_IF_ERROR(output->Wait());
  GR_ASSIGN_OR_RETURN(auto fetched, Fetch(output->data(), bytes));
  uint64_t written = 0;
  for (const device::Row& row : made.plan.rows()) {
    std::memset(fetched.data() + written, static_cast<int>(device::kPoison),
                row.destination - written);
    written = row.destination +
              row.window_bytes / device::SourceBytes(row.kind) * device::OutputBytes(row.kind);
  }
  std::memset(fetched.data() + written, static_cast<int>(device::kPoison), bytes - written);
  const std::string difference = Difference(made, fetched);
  return difference.empty() ? difference : absl::StrCat("stream: ", difference);
}

// What a tier does: pieces of many sizes, pageable ones, next to each other in one block.
absl::StatusOr<std::string> CheckTierMemory(std::shared_ptr<GpuDevice> gpu, uint64_t seed) {
  const auto memory = NewGpuTierMemory(std::move(gpu));
  std::mt19937_64 random(seed);
  std::vector<uint64_t> sizes{20 << 20, 1, 8 << 20, 3};  // The buffers between have 8 MiB.
  for (int i = 0; i < 100; ++i) sizes.push_back(1 + random() % (200 << 10));
  const uint64_t bytes = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  std::vector<std::byte> source(bytes);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  GR_ASSIGN_OR_RETURN(std::byte* const block, memory->Allocate(bytes));
  std::vector<kernels::Copy> copies;
  uint64_t offset = 0;
  for (const uint64_t size : sizes) {
    copies.push_back({source.data() + offset, block + offset, size});
    offset += size;
  }
  const absl::Status copied = memory->Copy(copies);
  const auto fetched = Fetch(block, bytes);
  memory->Free(block);
  GR_RETURN_IF_ERROR(copied);
  GR_RETURN_IF_ERROR(fetched.status());
  return *fetched == source ? "" : "tier: what was copied is not what arrived";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SelfTest(int index, uint64_t seed, int rounds,
                                                  bool large) {
  GR_ASSIGN_OR_RETURN(const auto gpu, OpenGpu(index));
  const auto& device = static_cast<const GpuDevice&>(*gpu);
  const CurrentGpu current(index);
  GR_RETURN_IF_ERROR(current.status());
  GR_ASSIGN_OR_RETURN(const auto stream, gpu->NewStream(/*kept=*/2));
  std::vector<std::string> differences;
  const auto note = [&](std::string difference) {
    if (!difference.empty()) differences.push_back(std::move(difference));
  };
  GR_ASSIGN_OR_RETURN(std::string tier,
                      CheckTierMemory(std::static_pointer_cast<GpuDevice>(gpu), seed));
  note(std::move(tier));
  for (const CaseSize size : {CaseSize::kSmall, CaseSize::kMedium, CaseSize::kLarge}) {
    if (size == CaseSize::kLarge && !large) continue;
    for (int i = 0; i < rounds; ++i) {
      const GatherCase made = RandomGatherCase(seed + i, size);
      for (const GatherWay way : {GatherWay::kLanes, GatherWay::kBulk, GatherWay::kEngine}) {
        if (way == GatherWay::kBulk && !HasKernel(GatherKernel::kBulk, device.info().major))
          continue;
        for (const Place place : {Place::kPinnedHost, Place::kDevice}) {
          GR_ASSIGN_OR_RETURN(std::string difference, CheckWay(way, place, made, device.blocks()));
          note(std::move(difference));
        }
      }
      GR_ASSIGN_OR_RETURN(std::string difference, CheckStream(*stream, made));
      note(std::move(difference));
    }
  }
  return differences;
}

absl::StatusOr<double> MeasureGather(int index, const std::string& way, const std::string& place,
                                     const GatherShape& shape, int repeats) {
  GR_ASSIGN_OR_RETURN(const auto gpu, OpenGpu(index));
  const auto& device = static_cast<const GpuDevice&>(*gpu);
  GR_ASSIGN_OR_RETURN(const GatherWay chosen, WayOf(way));
  if (chosen == GatherWay::kBulk && !HasKernel(GatherKernel::kBulk, device.info().major)) {
    return absl::UnimplementedError("Bulk copies need compute capability 9.0.");
  }
  const CurrentGpu current(index);
  GR_RETURN_IF_ERROR(current.status());
  return MeasureWay(chosen, place == "device" ? Place::kDevice : Place::kPinnedHost, shape, repeats,
                    device.blocks());
}

absl::StatusOr<double> MeasureCopy(int index, const std::string& place, uint64_t bytes,
                                   int repeats) {
  GR_RETURN_IF_ERROR(Availability());
  const CurrentGpu current(index);
  GR_RETURN_IF_ERROR(current.status());
  return MeasureLargeCopy(place == "device" ? Place::kDevice : Place::kPinnedHost, bytes, repeats);
}

}  // namespace gear_reverb::cuda
