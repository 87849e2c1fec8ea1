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
size_t IndexAt(const GatherPlan& plan) {
  return RowsBytes(plan) + plan.pieces().size() * sizeof(RowPiece);
}

absl::Status Launch(GatherKernel kernel, const GatherPlan& plan, std::byte* output,
                    std::byte* host_list, std::byte* device_list, const GatherBlocks& held,
                    cudaStream_t stream) {
  if (plan.tile_count() == 0) return absl::OkStatus();
  GR_RETURN_IF_ERROR(UploadList(plan, host_list, device_list, stream));
  return LaunchUploaded(kernel, plan, output, device_list, held, stream);
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

// Of a list: rows, pieces, the tiles' index. Also enough for any part of the plan, which may have
// an index where the plan has none.
size_t ListBytes(const GatherPlan& plan) {
  return IndexAt(plan) + std::min(plan.tile_count(), device::kMostIndexedTiles) * sizeof(uint32_t);
}

absl::Status UploadList(const GatherPlan& plan, std::byte* host_list, std::byte* device_list,
                        cudaStream_t stream) {
  std::memcpy(host_list, plan.rows().data(), plan.rows().size() * sizeof(Row));
  std::memcpy(host_list + RowsBytes(plan), plan.pieces().data(),
              plan.pieces().size() * sizeof(RowPiece));
  const size_t index_bytes = plan.row_of_tile().size() * sizeof(uint32_t);
  std::memcpy(host_list + IndexAt(plan), plan.row_of_tile().data(), index_bytes);
  return ToStatus(cudaMemcpyAsync(device_list, host_list, IndexAt(plan) + index_bytes,
                                  cudaMemcpyHostToDevice, stream),
                  "the list's upload");
}

absl::Status LaunchUploaded(GatherKernel kernel, const GatherPlan& plan, std::byte* output,
                            const std::byte* device_list, const GatherBlocks& held,
                            cudaStream_t stream) {
  const device::RowList list{reinterpret_cast<const Row*>(device_list),
                             reinterpret_cast<const RowPiece*>(device_list + RowsBytes(plan)),
                             static_cast<uint32_t>(plan.rows().size()), plan.tile_count(),
                             plan.row_of_tile().empty()
                                 ? nullptr
                                 : reinterpret_cast<const uint32_t*>(device_list + IndexAt(plan))};
  return ToStatus(LaunchGather(kernel, list, output, held, stream), "the gather's launch");
}

absl::Status StartGather(GatherWay way, const GatherPlan& plan, std::byte* output,
                         std::byte* host_list, std::byte* device_list, const GatherBlocks& held,
                         cudaStream_t stream) {
  if (way != GatherWay::kEngine) {
    return Launch(KernelOf(way), plan, output, host_list, device_list, held, stream);
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
  return Launch(GatherKernel::kLanes, others, output, host_list, device_list, held, stream);
}

}  // namespace gear_reverb::cuda
