#include "native/cuda/measure.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/time/clock.h"

namespace gear_reverb::cuda {
namespace {

using device::GatherPlan;
using device::RowKind;

constexpr uint64_t kClassesEndAt[] = {uint64_t{2} << 10, uint64_t{32} << 10, uint64_t{1} << 20,
                                      UINT64_MAX};
constexpr uint64_t kPieceOfClass[] = {uint64_t{1} << 10, uint64_t{16} << 10, uint64_t{256} << 10,
                                      uint64_t{4} << 20};
constexpr uint64_t kMostSourceBytes = uint64_t{1} << 30;
// Smaller pieces cost the copy engine more to start than to copy.
constexpr uint64_t kEngineFromClass = 2;

// What is written between two runs, so that caches have nothing of the last one.
constexpr uint64_t kFlushedBytes = uint64_t{128} << 20;
constexpr uint64_t kWordBytes = 16;

// The median time of `repeats` runs of `start` after one that does not count, in seconds: each
// begins while the GPU is still busy with other memory, so that nothing waits for the launch, and
// caches are of no use.
template <typename Start>
absl::StatusOr<double> MedianSeconds(int repeats, cudaStream_t stream, absl::Duration warm_up,
                                     Start start) {
  GR_ASSIGN_OR_RETURN(const Event begin, NewEvent(/*times=*/true));
  GR_ASSIGN_OR_RETURN(const Event end, NewEvent(/*times=*/true));
  const absl::StatusOr<DeviceMemory> flushed = NewDeviceMemory(kFlushedBytes);
  std::vector<float> times;
  const absl::Time warm = absl::Now() + warm_up;
  for (bool counts = false; times.size() < static_cast<size_t>(repeats);
       counts = absl::Now() >= warm) {
    if (flushed.ok()) {  // Else there is no memory for it.
      GR_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(flushed->get(), 1, kFlushedBytes, stream));
    }
    GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(begin.get(), stream));
    GR_RETURN_IF_ERROR(start());
    GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(end.get(), stream));
    GR_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    GR_RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    if (counts) times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] * 1e-3;
}

// Memory to gather from, not all of one byte: equal bytes can be faster.
struct MeasuredMemory {
  PinnedMemory host;
  DeviceMemory device;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};
absl::StatusOr<MeasuredMemory> Allocate(Place place, uint64_t bytes) {
  MeasuredMemory sources;
  sources.bytes = bytes;
  GR_ASSIGN_OR_RETURN(sources.host, NewPinnedMemory(bytes));
  if (place == Place::kDevice) {
    GR_ASSIGN_OR_RETURN(sources.device, NewDeviceMemory(bytes));
  }
  return sources;
}
// `bytes`, or where there is not as much memory less, but `least`.
absl::StatusOr<MeasuredMemory> NewSources(Place place, uint64_t bytes, uint64_t least) {
  absl::StatusOr<MeasuredMemory> made = Allocate(place, bytes);
  while (absl::IsResourceExhausted(made.status()) && bytes > least) {
    bytes = std::max(bytes / 2, least);
    made = Allocate(place, bytes);
  }
  GR_RETURN_IF_ERROR(made.status());
  auto* const words = static_cast<uint64_t*>(made->host.get());
  made->data = static_cast<std::byte*>(made->host.get());
  uint64_t word = 1, filled = std::min(bytes, uint64_t{8} << 20);
  for (uint64_t i = 0; i < filled / sizeof(word); ++i) {
    words[i] = word = word * 6364136223846793005u + 1442695040888963407u;
  }
  for (; filled < bytes; filled += std::min(filled, bytes - filled)) {
    std::memcpy(made->data + filled, made->data, std::min(filled, bytes - filled));
  }
  if (place == Place::kDevice) {
    GR_RETURN_IF_CUDA_ERROR(
        cudaMemcpy(made->device.get(), made->host.get(), bytes, cudaMemcpyHostToDevice));
    made->data = static_cast<std::byte*>(made->device.get());
  }
  return made;
}

uint64_t RoundUp(uint64_t bytes) { return (bytes + 127) / 128 * 128; }

absl::Status Check(const GatherShape& shape, int repeats) {
  bool right = shape.items >= 1 && !shape.columns.empty() && repeats >= 1;
  for (const ColumnShape& column : shape.columns) {
    right = right && column.pieces >= 1 && column.piece_bytes >= 1;
  }
  if (right && shape.least > 0 && shape.least <= 1) return absl::OkStatus();
  return base::InvalidArgument(
      "There must be items, columns, pieces, piece_bytes and repeats, and least must be in (0, "
      "1].");
}

}  // namespace

absl::StatusOr<double> MeasureWay(GatherWay way, Place place, const GatherShape& shape, int repeats,
                                  const GatherBlocks& all, absl::Duration warm_up) {
  GR_RETURN_IF_ERROR(Check(shape, repeats));
  const GatherBlocks held = place == Place::kDevice ? all : all.ForHost();
  uint64_t slot_bytes = 0, item_bytes = 0, pieces = 0;
  for (const ColumnShape& column : shape.columns) {
    slot_bytes = std::max(slot_bytes, RoundUp(column.piece_bytes) + 128);
    item_bytes += column.pieces * column.piece_bytes;
    pieces = std::max(pieces, column.pieces);
  }
  const uint64_t least = std::max(2 * kMeasuredBytes / slot_bytes, 2 * pieces) * slot_bytes;
  const uint64_t wanted = std::min(2 * shape.items * item_bytes, kMostSourceBytes);
  GR_ASSIGN_OR_RETURN(const MeasuredMemory sources,
                      NewSources(place, std::max(wanted, least), least));
  const uint64_t slots = sources.bytes / slot_bytes;
  GatherPlan plan;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> length(shape.least, 1);
  uint64_t output_bytes = 0;
  for (uint64_t item = 0; item < shape.items; ++item) {
    const double part = shape.least < 1 ? length(random) : 1;
    for (const ColumnShape& column : shape.columns) {
      const auto bytes = std::max<uint64_t>(1, static_cast<uint64_t>(part * column.piece_bytes));
      plan.AddRow(RowKind::kCopy, output_bytes, 0, column.pieces * bytes);
      for (uint64_t i = 0; i < column.pieces; ++i) {
        // At any word, as items of all lengths come to lie.
        const uint64_t word = random() % ((slot_bytes - bytes) / kWordBytes + 1);
        plan.AddPiece(sources.data + random() % slots * slot_bytes + word * kWordBytes, bytes);
      }
      output_bytes += RoundUp(column.pieces * bytes);
    }
  }
  GR_ASSIGN_OR_RETURN(const DeviceMemory output, NewDeviceMemory(output_bytes));
  GR_ASSIGN_OR_RETURN(const PinnedMemory host_list, NewPinnedMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const DeviceMemory device_list, NewDeviceMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const Stream stream, NewStream());
  auto* const to = static_cast<std::byte*>(output.get());
  auto* const host = static_cast<std::byte*>(host_list.get());
  auto* const list = static_cast<std::byte*>(device_list.get());
  const bool by_engine = way == GatherWay::kEngine;
  if (!by_engine) GR_RETURN_IF_ERROR(UploadList(plan, host, list, stream.get()));
  GR_ASSIGN_OR_RETURN(
      const double seconds, MedianSeconds(repeats, stream.get(), warm_up, [&] {
        return by_engine ? StartGather(way, plan, to, host, list, held, stream.get())
                         : LaunchUploaded(KernelOf(way), plan, to, list, held, stream.get());
      }));
  return static_cast<double>(plan.source_bytes()) / seconds;
}

absl::StatusOr<double> MeasureLargeCopy(Place place, uint64_t bytes, int repeats) {
  if (bytes < 1 || repeats < 1) return base::InvalidArgument("bytes and repeats must be >= 1.");
  GR_ASSIGN_OR_RETURN(const MeasuredMemory sources, NewSources(place, bytes, bytes));
  GR_ASSIGN_OR_RETURN(const DeviceMemory output, NewDeviceMemory(bytes));
  GR_ASSIGN_OR_RETURN(const Stream stream, NewStream());
  GR_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(repeats, stream.get(), kWarmUp, [&] {
                        return ToStatus(cudaMemcpyAsync(output.get(), sources.data, bytes,
                                                        cudaMemcpyDefault, stream.get()),
                                        "cudaMemcpyAsync");
                      }));
  return static_cast<double>(bytes) / seconds;
}

GatherWay Choices::For(uint64_t mean_piece_bytes) const {
  for (size_t i = 0; i < classes.size(); ++i) {
    if (mean_piece_bytes < classes[i].piece_bytes_below) return ways[i];
  }
  return GatherWay::kLanes;
}

absl::StatusOr<Choices> ChooseWays(Place place, int major, const GatherBlocks& held,
                                   uint64_t bytes) {
  constexpr int kRepeats = 3;
  Choices choices = UnmeasuredChoices();
  GR_ASSIGN_OR_RETURN(choices.copy_bytes_per_second, MeasureLargeCopy(place, bytes, kRepeats));
  for (size_t i = 0; i < choices.classes.size(); ++i) {
    const uint64_t piece = kPieceOfClass[i];
    const GatherShape shape{std::max(bytes / piece, uint64_t{1}), {{1, piece}}};
    device::ClassChoice& choice = choices.classes[i];
    for (const GatherWay way : {GatherWay::kLanes, GatherWay::kBulk, GatherWay::kEngine}) {
      if (way == GatherWay::kBulk && !HasKernel(GatherKernel::kBulk, major)) continue;
      if (way == GatherWay::kEngine && i < kEngineFromClass) continue;
      GR_ASSIGN_OR_RETURN(const double rate,
                          MeasureWay(way, place, shape, kRepeats, held, absl::ZeroDuration()));
      if (rate <= choice.bytes_per_second) continue;
      choice.bytes_per_second = rate;
      choice.of_copy = rate / choices.copy_bytes_per_second;
      choice.way = Name(way);
      choices.ways[i] = way;
    }
  }
  return choices;
}

Choices UnmeasuredChoices() {
  Choices choices;
  for (const uint64_t end : kClassesEndAt) {
    choices.classes.push_back({end, Name(GatherWay::kLanes), 0, 0});
    choices.ways.push_back(GatherWay::kLanes);
  }
  return choices;
}

}  // namespace gear_reverb::cuda
