#include "native/device/gather_plan.h"

namespace gear_reverb::device {

void GatherPlan::Reserve(size_t rows, size_t pieces) {
  rows_.reserve(rows);
  pieces_.reserve(pieces);
  blocks_.reserve(pieces);
  piece_bytes_.reserve(pieces);
}

void GatherPlan::AddRow(RowKind kind, uint64_t destination, int64_t window_begin,
                        uint64_t window_bytes) {
  Row& row = rows_.emplace_back();
  row.destination = destination;
  row.window_bytes = window_bytes;
  row.window_begin = window_begin;
  row.source_bytes = 0;
  row.first_tile = tile_count_;
  row.first_piece = static_cast<uint32_t>(pieces_.size());
  row.pieces = 0;
  row.kind = kind;
  row.skew =
      static_cast<uint32_t>(destination % kTileAlignment * SourceBytes(kind) / OutputBytes(kind));
  tile_count_ += (window_bytes + row.skew + kTileBytes - 1) / kTileBytes;
  if (tile_count_ <= kMostIndexedTiles) {
    row_of_tile_.resize(tile_count_, static_cast<uint32_t>(rows_.size() - 1));
  }
}

void GatherPlan::AddPiece(const std::byte* data, uint64_t bytes, const std::byte* block) {
  Row& row = rows_.back();
  row.source_bytes += bytes;
  ++row.pieces;
  pieces_.push_back({data, row.source_bytes});
  blocks_.push_back(block);
  piece_bytes_.push_back(bytes);
  source_bytes_ += bytes;
}

void GatherPlan::AddMask(uint64_t destination, int64_t window_begin, uint64_t window_steps,
                         uint64_t steps) {
  AddRow(RowKind::kMask, destination, window_begin, window_steps);
  rows_.back().source_bytes = steps;
}

}  // namespace gear_reverb::device
