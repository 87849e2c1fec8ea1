// A gather as the kernels read it: plain data that lies in a device's memory, and includes nothing
// but the standard library, so that kernels compile by themselves.
//
// A row is a run of output bytes: of one item's column, or of a mask. It is written from a window
// of the row's source, which is the concatenation of the row's pieces. The window may begin before
// the source and end after it; what has no source is zero. Rows do not overlap; the output's bytes
// between them are left as they are. All offsets have 64 bits.
//
// Work is cut into tiles of kTileBytes of windows, numbered through all rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gear_reverb::device {

enum class RowKind : uint32_t {
  kCopy,
  kFloat32ToBfloat16,  // To the nearest, ties to even; every NaN becomes 0x7fff.
  kFloat32ToFloat16,   // Likewise.
  kUint8ToFloat16,     // Divided by 255.
  kMask,               // The source is `source_bytes` ones, and no piece.
};

// Bytes of one element, in the source and in the output.
constexpr uint32_t SourceBytes(RowKind kind) {
  return kind == RowKind::kFloat32ToBfloat16 || kind == RowKind::kFloat32ToFloat16 ? 4 : 1;
}
constexpr uint32_t OutputBytes(RowKind kind) {
  return kind == RowKind::kCopy || kind == RowKind::kMask ? 1 : 2;
}

struct RowPiece {
  const std::byte* data;  // As the device that gathers addresses it.
  uint64_t end;           // Of the bytes of the row's pieces up to and with this one.
};

struct Row {
  uint64_t destination;   // First byte in the output.
  uint64_t window_bytes;  // Of the source, padding included; whole elements.
  int64_t window_begin;   // Where in the source the window begins; negative: before it.
  uint64_t source_bytes;  // Of all pieces.
  uint64_t first_tile;
  uint32_t first_piece;
  uint32_t pieces;
  RowKind kind;
  uint32_t skew;  // Window bytes that the first tile is shorter, so that others start aligned.
};

constexpr uint64_t kTileBytes = 8192;
// Tiles but a row's first start at multiples of this in the output, or of half or twice that for
// casts.
constexpr uint64_t kTileAlignment = 128;

// Lists of more tiles have no index: their time is not that of finding rows.
constexpr uint64_t kMostIndexedTiles = 4096;

struct RowList {
  const Row* rows;
  const RowPiece* pieces;
  uint32_t row_count;
  uint64_t tile_count;
  const uint32_t* row_of_tile;  // Or null: rows are searched for.
};

}  // namespace gear_reverb::device
