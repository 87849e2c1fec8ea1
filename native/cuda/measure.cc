#include "native/cuda/measure.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace gear_reverb::cuda {
namespace {

using device::GatherPlan;
using device::RowKind;

constexpr uint64_t kClassesEndAt[] = {uint64_t{2} << 10, uint64_t{32} << 10, uint64_t{1} << 20,
                                      UINT64_MAX};
constexpr uint64_t kPieceOfClass[] = {uint64_t{1} << 10, uint64_t{16} << 10, uint64_t{256} << 10,
                                      uint64_t{4} << 20};
constexpr uint64_t kMeasuredBytes = uint64_t{64} << 20;
// Smaller pieces cost the copy engine more to start than to copy.
constexpr uint64_t kEngineFromClass = 2;

// The median time of `repeats` runs of `start`, after one that is not counted, in seconds.
template <typename Start>
absl::StatusOr<double> MedianSeconds(int repeats, cudaStream_t stream, Start start) {
  GR_ASSIGN_OR_RETURN(const Event begin, NewEvent(/*times=*/true));
  GR_ASSIGN_OR_RETURN(const Event end, NewEvent(/*times=*/true));
  std::vector<float> times;
  for (int i = 0; i <= repeats; ++i) {
    GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(begin.get(), stream));
    GR_RETURN_IF_ERROR(start());
    GR_RETURN_IF_CUDA_ERROR(cudaEventRecord(end.get(), stream));
    GR_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    GR_RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    if (i > 0) times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] * 1e-3;
}

// Memory to gather from, not all of one byte: equal bytes can be faster.
struct MeasuredMemory {
  PinnedMemory host;
  DeviceMemory device;
  std::byte* data = nullptr;
};
absl::StatusOr<MeasuredMemory> NewSources(Place place, uint64_t bytes) {
  MeasuredMemory sources;
  GR_ASSIGN_OR_RETURN(sources.host, NewPinnedMemory(bytes));
  auto* const words = static_cast<uint64_t*>(sources.host.get());
  uint64_t word = 1;
  for (uint64_t i = 0; i < bytes / sizeof(word); ++i) {
    words[i] = word = word * 6364136223846793005u + 1442695040888963407u;
  }
  sources.data = static_cast<std::byte*>(sources.host.get());
  if (place == Place::kDevice) {
    GR_ASSIGN_OR_RETURN(sources.device, NewDeviceMemory(bytes));
    GR_RETURN_IF_CUDA_ERROR(
        cudaMemcpy(sources.device.get(), sources.host.get(), bytes, cudaMemcpyHostToDevice));
    sources.data = static_cast<std::byte*>(sources.device.get());
  }
  return sources;
}

}  // namespace

absl::StatusOr<double> MeasureWay(GatherWay way, Place place, const GatherShape& shape, int repeats,
                                  int multiprocessors) {
  if (shape.rows < 1 || shape.pieces < 1 || shape.piece_bytes < 1 || repeats < 1) {
    return base::InvalidArgument("rows, pieces, piece_bytes and repeats must be >= 1.");
  }
  const uint64_t slot_bytes = (shape.piece_bytes + 127) / 128 * 128;
  const uint64_t slots = std::max(2 * kMeasuredBytes / slot_bytes, 2 * shape.pieces);
  GR_ASSIGN_OR_RETURN(const MeasuredMemory sources, NewSources(place, slots * slot_bytes));
  GatherPlan plan;
  std::mt19937_64 random(1);
  const uint64_t row_room = (shape.row_bytes() + 127) / 128 * 128;
  for (uint64_t row = 0; row < shape.rows; ++row) {
    plan.AddRow(RowKind::kCopy, row * row_room, 0, shape.row_bytes());
    for (uint64_t i = 0; i < shape.pieces; ++i) {
      plan.AddPiece(sources.data + random() % slots * slot_bytes, shape.piece_bytes);
    }
  }
  GR_ASSIGN_OR_RETURN(const DeviceMemory output, NewDeviceMemory(shape.rows * row_room));
  GR_ASSIGN_OR_RETURN(const PinnedMemory host_list, NewPinnedMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const DeviceMemory device_list, NewDeviceMemory(ListBytes(plan)));
  GR_ASSIGN_OR_RETURN(const Stream stream, NewStream());
  GR_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(repeats, stream.get(), [&] {
                        return StartGather(way, plan, static_cast<std::byte*>(output.get()),
                                           static_cast<std::byte*>(host_list.get()),
                                           static_cast<std::byte*>(device_list.get()),
                                           multiprocessors, stream.get());
                      }));
  return static_cast<double>(plan.source_bytes()) / seconds;
}

absl::StatusOr<double> MeasureLargeCopy(Place place, uint64_t bytes, int repeats) {
  if (bytes < 1 || repeats < 1) return base::InvalidArgument("bytes and repeats must be >= 1.");
  GR_ASSIGN_OR_RETURN(const MeasuredMemory sources, NewSources(place, bytes));
  GR_ASSIGN_OR_RETURN(const DeviceMemory output, NewDeviceMemory(bytes));
  GR_ASSIGN_OR_RETURN(const Stream stream, NewStream());
  GR_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(repeats, stream.get(), [&] {
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

absl::StatusOr<Choices> ChooseWays(Place place, int major, int multiprocessors) {
  constexpr int kRepeats = 3;
  Choices choices = UnmeasuredChoices();
  GR_ASSIGN_OR_RETURN(choices.copy_bytes_per_second,
                      MeasureLargeCopy(place, kMeasuredBytes, kRepeats));
  for (size_t i = 0; i < choices.classes.size(); ++i) {
    const GatherShape shape{kMeasuredBytes / kPieceOfClass[i], 1, kPieceOfClass[i]};
    device::ClassChoice& choice = choices.classes[i];
    for (const GatherWay way : {GatherWay::kLanes, GatherWay::kBulk, GatherWay::kEngine}) {
      if (way == GatherWay::kBulk && !HasKernel(GatherKernel::kBulk, major)) continue;
      if (way == GatherWay::kEngine && i < kEngineFromClass) continue;
      GR_ASSIGN_OR_RETURN(const double rate,
                          MeasureWay(way, place, shape, kRepeats, multiprocessors));
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
