// The list of rows that one gather writes, put together on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "native/device/gather_rows.h"
#include "native/kernels/gather.h"

namespace gear_reverb::device {

class GatherPlan {
 public:
  void Reserve(size_t rows, size_t pieces);

  // Starts a row; its pieces follow. `window_begin` and `window_bytes` are whole elements, and
  // `destination` is a multiple of the output's element.
  void AddRow(RowKind kind, uint64_t destination, int64_t window_begin, uint64_t window_bytes);
  // Of the row that was added last. A piece is whole elements; its address may be any.
  // `block`: where the memory block starts that it lies in, if that is known to be a chunk's
  // column.
  void AddPiece(const std::byte* data, uint64_t bytes, const std::byte* block = nullptr);
  // `window_steps` bytes: 1 where a step of [0, steps) is, else 0.
  void AddMask(uint64_t destination, int64_t window_begin, uint64_t window_steps, uint64_t steps);

  absl::Span<const Row> rows() const { return rows_; }
  absl::Span<const RowPiece> pieces() const { return pieces_; }
  // For a device that has other addresses.
  RowPiece& mutable_piece(size_t index) { return pieces_[index]; }
  // By piece; see AddPiece.
  absl::Span<const std::byte* const> blocks() const { return blocks_; }
  uint64_t piece_bytes(size_t piece) const { return piece_bytes_[piece]; }
  uint64_t tile_count() const { return tile_count_; }
  // The row of every tile; empty where there are more than kMostIndexedTiles.
  absl::Span<const uint32_t> row_of_tile() const {
    if (tile_count_ > kMostIndexedTiles) return {};
    return row_of_tile_;
  }
  // Which points into the plan.
  RowList list() const {
    return {rows_.data(), pieces_.data(), static_cast<uint32_t>(rows_.size()), tile_count_,
            row_of_tile().data()};
  }
  // Of all pieces, whether or not a window shows them.
  uint64_t source_bytes() const { return source_bytes_; }

 private:
  std::vector<Row> rows_;
  std::vector<uint32_t> row_of_tile_;  // As long as there is to be an index.
  std::vector<RowPiece> pieces_;
  // What the device does not need to know of a piece.
  std::vector<const std::byte*> blocks_;
  std::vector<uint64_t> piece_bytes_;
  uint64_t tile_count_ = 0;
  uint64_t source_bytes_ = 0;
};

// The twin of the kernels: the same bytes on the CPU, by kernels::Gather where nothing is cast.
// Rows and pieces are at this process's addresses.
void GatherOnCpu(const RowList& list, std::byte* output,
                 const kernels::GatherOptions& options = {});

}  // namespace gear_reverb::device
