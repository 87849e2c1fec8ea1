#include "native/cuda/gather.h"

#include <algorithm>
#include <cstring>

namespace gear_reverb::cuda {
namespace {

using device::GatherPlan;
using device::Row;
using device::RowKind;
using device::RowPiece;

size_t RowsBytes(const GatherPlan& plan) {
  return (plan.rows().size() * sizeof(Row) + 15) / 16 * 16;
}

absl::Status Launch(GatherKernel kernel, const GatherPlan& plan, std::byte* output,
                    std::byte* host_list, std::byte* device_list, int multiprocessors,
                    cudaStream_t stream) {
  if (plan.tile_count() == 0) return absl::OkStatus();
  const size_t rows_bytes = RowsBytes(plan);
  std::memcpy(host_list, plan.rows().data(), plan.rows().size() * sizeof(Row));
  std::memcpy(host_list + rows_bytes, plan.pieces().data(),
              plan.pieces().size() * sizeof(RowPiece));
  GR_RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(device_list, host_list, ListBytes(plan), cudaMemcpyHostToDevice, stream));
  const device::RowList list{reinterpret_cast<const Row*>(device_list),
                             reinterpret_cast<const RowPiece*>(device_list + rows_bytes),
                             static_cast<uint32_t>(plan.rows().size()), plan.tile_count()};
  return ToStatus(LaunchGather(kernel, list, output, multiprocessors, stream),
                  "the gather's launch");
}

// One row of whole bytes: its padding is set, its pieces are copied.
absl::Status CopyRow(const Row& row, const RowPiece* pieces, std::byte* output,
                     cudaStream_t stream) {
  std::byte* const begin = output + row.destination;
  const auto window = static_cast<int64_t>(row.window_bytes);
  const int64_t from = std::clamp(-row.window_begin, int64_t{0}, window);
  const int64_t to =
      std::clamp(static_cast<int64_t>(row.source_bytes) - row.window_begin, from, window);
  if (from > 0) GR_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(begin, 0, from, stream));
  if (to < window) GR_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(begin + to, 0, window - to, stream));
  int64_t piece_begin = -row.window_begin;  // In the window.
  for (uint32_t i = 0; i < row.pieces; ++i) {
    const int64_t piece_end = static_cast<int64_t>(pieces[i].end) - row.window_begin;
    const int64_t first = std::max(piece_begin, from), last = std::min(piece_end, to);
    if (first < last) {
      GR_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(begin + first, pieces[i].data + (first - piece_begin),
                                              last - first, cudaMemcpyDefault, stream));
    }
    piece_begin = piece_end;
  }
  return absl::OkStatus();
}

}  // namespace

const char* Name(GatherWay way) {
  switch (way) {
    case GatherWay::kLanes: return "lanes";
    case GatherWay::kBulk: return "bulk";
    case GatherWay::kEngine: return "engine";
  }
  return "";
}

absl::StatusOr<GatherWay> WayOf(const std::string& name) {
  for (const GatherWay way : {GatherWay::kLanes, GatherWay::kBulk, GatherWay::kEngine}) {
    if (name == Name(way)) return way;
  }
  return base::InvalidArgument("There is no way of gathering called '", name, "'.");
}

size_t ListBytes(const GatherPlan& plan) {
  return RowsBytes(plan) + plan.pieces().size() * sizeof(RowPiece);
}

absl::Status StartGather(GatherWay way, const GatherPlan& plan, std::byte* output,
                         std::byte* host_list, std::byte* device_list, int multiprocessors,
                         cudaStream_t stream) {
  if (way != GatherWay::kEngine) {
    const GatherKernel kernel =
        way == GatherWay::kBulk ? GatherKernel::kBulk : GatherKernel::kLanes;
    return Launch(kernel, plan, output, host_list, device_list, multiprocessors, stream);
  }
  GatherPlan others;
  for (const Row& row : plan.rows()) {
    const RowPiece* const pieces = plan.pieces().data() + row.first_piece;
    if (row.kind == RowKind::kCopy) {
      GR_RETURN_IF_ERROR(CopyRow(row, pieces, output, stream));
    } else if (row.kind == RowKind::kMask) {
      others.AddMask(row.destination, row.window_begin, row.window_bytes, row.source_bytes);
    } else {
      others.AddRow(row.kind, row.destination, row.window_begin, row.window_bytes);
      for (uint32_t i = 0; i < row.pieces; ++i) {
        others.AddPiece(pieces[i].data, pieces[i].end - (i == 0 ? 0 : pieces[i - 1].end));
      }
    }
  }
  return Launch(GatherKernel::kLanes, others, output, host_list, device_list, multiprocessors,
                stream);
}

}  // namespace gear_reverb::cuda
