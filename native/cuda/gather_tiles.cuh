// How a warp writes a list of rows: it takes tiles, finds each one's row and pieces, and writes its
// padding and its segments.
#pragma once

#include <cstdint>

#include "native/cuda/segment.cuh"

namespace gear_reverb::cuda {

using device::kTileBytes;
using device::Row;
using device::RowList;
using device::RowPiece;

// Rows with shorter pieces have a warp's lanes work on several pieces at once.
constexpr uint64_t kWholeWarpFromBytes = 1024;
constexpr uint32_t kSmallGroup = 8;

// The first of `count` sorted numbers number(i) that is above `value`; `count` if none is. By the
// whole warp, 32 of them at a time.
template <typename Number>
__device__ uint32_t UpperBound(uint32_t lane, uint32_t count, uint64_t value, Number number) {
  uint32_t low = 0;  // The answer is in [low, low + left].
  for (uint32_t left = count; left > 0;) {
    const uint32_t step = (left + 31) / 32;
    // Lane i asks for the last number of part i.
    const uint32_t end = min((lane + 1) * step, left);
    const bool above = lane * step < left && number(low + end - 1) > value;
    const uint32_t found = __ballot_sync(~0u, above);
    if (found == 0) return low + left;
    const uint32_t part = __ffs(found) - 1;
    const uint32_t part_end = min((part + 1) * step, left);
    low += part * step;
    left = part_end - part * step - 1;  // Its last one is known to be above.
  }
  return low;
}

// A tile: [begin, end) of its row's window, in source bytes.
struct Tile {
  const RowPiece* pieces;
  Row row;
  int64_t begin, end;

  __device__ uint64_t OutputOffset(int64_t window_offset) const {
    return row.destination + static_cast<uint64_t>(window_offset) / device::SourceBytes(row.kind) *
                                 device::OutputBytes(row.kind);
  }
};

__device__ inline Tile FindTile(const RowList& list, uint64_t number, uint32_t lane) {
  const uint32_t row = list.row_of_tile != nullptr
                           ? list.row_of_tile[number]
                           : UpperBound(lane, list.row_count, number, [&](uint32_t i) {
                               return list.rows[i].first_tile;
                             }) - 1;
  Tile tile;
  tile.row = list.rows[row];
  tile.pieces = list.pieces + tile.row.first_piece;
  const uint64_t index = number - tile.row.first_tile;
  const uint64_t end = (index + 1) * kTileBytes - tile.row.skew;
  tile.begin = static_cast<int64_t>(index == 0 ? 0 : index * kTileBytes - tile.row.skew);
  tile.end = static_cast<int64_t>(min(end, tile.row.window_bytes));
  return tile;
}

__device__ inline int64_t Clamp(int64_t value, int64_t least, int64_t most) {
  return max(least, min(value, most));
}

// Calls write(lanes, from, bytes, to) for the segments of [begin, end) of the source, each group of
// lanes for every so-many-th.
template <uint32_t kSize, typename Write>
__device__ void ForSegments(uint32_t lane, const Tile& tile, int64_t begin, int64_t end,
                            std::byte* output, Write write) {
  const auto lanes = Lanes<kSize>::OfWarpLane(lane);
  const auto source_begin = static_cast<uint64_t>(begin + tile.row.window_begin);
  const auto source_end = static_cast<uint64_t>(end + tile.row.window_begin);
  const uint32_t first = UpperBound(lane, tile.row.pieces, source_begin,
                                    [&](uint32_t i) { return tile.pieces[i].end; });
  for (uint32_t i = first + lane / kSize; i < tile.row.pieces; i += 32 / kSize) {
    const uint64_t piece_begin = i == 0 ? 0 : tile.pieces[i - 1].end;
    if (piece_begin >= source_end) break;
    const uint64_t from = max(piece_begin, source_begin);
    const uint64_t to = min(tile.pieces[i].end, source_end);
    if (from >= to) continue;  // An empty piece.
    write(lanes, tile.pieces[i].data + (from - piece_begin), static_cast<uint32_t>(to - from),
          output + tile.OutputOffset(static_cast<int64_t>(from) - tile.row.window_begin));
  }
  __syncwarp();
}

template <uint32_t kSize>
__device__ void WriteSegments(uint32_t lane, const Tile& tile, int64_t begin, int64_t end,
                              std::byte* output) {
  ForSegments<kSize>(lane, tile, begin, end, output,
                     [&](auto lanes, const std::byte* from, uint32_t bytes, std::byte* to) {
                       WriteSegment(lanes, tile.row.kind, from, bytes, to);
                     });
}

// Writes a tile but for the part that `copy` takes over: copy(tile, begin, end) says whether it
// did.
template <typename Copy>
__device__ void WriteTile(uint32_t lane, const Tile& tile, std::byte* output, Copy copy) {
  const auto window = static_cast<int64_t>(tile.row.window_bytes);
  // What of the window, and then of the tile, has a source.
  const int64_t from = Clamp(-tile.row.window_begin, 0, window);
  const int64_t to =
      Clamp(static_cast<int64_t>(tile.row.source_bytes) - tile.row.window_begin, from, window);
  const int64_t begin = Clamp(from, tile.begin, tile.end), end = Clamp(to, begin, tile.end);
  const auto fill = [&](int64_t first, int64_t last, uint32_t value) {
    Fill(lane, output + tile.OutputOffset(first), output + tile.OutputOffset(last), value);
  };
  fill(tile.begin, begin, 0);
  fill(end, tile.end, 0);
  if (begin == end) return;
  if (tile.row.kind == RowKind::kMask) return fill(begin, end, 1);
  if (copy(tile, begin, end)) return;
  if (tile.row.source_bytes / tile.row.pieces >= kWholeWarpFromBytes) {
    WriteSegments<32>(lane, tile, begin, end, output);
  } else {
    WriteSegments<kSmallGroup>(lane, tile, begin, end, output);
  }
}

template <typename DoTile>
__device__ void ForTiles(const RowList& list, DoTile do_tile) {
  const uint32_t warps = blockDim.x / 32;
  for (uint64_t number = uint64_t{blockIdx.x} * warps + threadIdx.x / 32; number < list.tile_count;
       number += uint64_t{gridDim.x} * warps) {
    do_tile(number);
  }
}

}  // namespace gear_reverb::cuda
