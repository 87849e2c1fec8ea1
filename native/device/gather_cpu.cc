#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "native/device/casts.h"
#include "native/device/gather_plan.h"

namespace gear_reverb::device {
namespace {

template <typename Convert>
void CastFloats(const std::byte* from, uint64_t bytes, std::byte* to, Convert convert) {
  for (uint64_t i = 0; i < bytes; i += sizeof(float), to += sizeof(uint16_t)) {
    float value;
    std::memcpy(&value, from + i, sizeof(value));
    const uint16_t cast = convert(value);
    std::memcpy(to, &cast, sizeof(cast));
  }
}

void CastBytes(const std::byte* from, uint64_t bytes, std::byte* to) {
  static const auto table = [] {
    std::array<uint16_t, 256> values;
    for (int i = 0; i < 256; ++i) values[i] = UnitToFloat16(static_cast<uint8_t>(i));
    return values;
  }();
  for (uint64_t i = 0; i < bytes; ++i, to += sizeof(uint16_t)) {
    std::memcpy(to, &table[static_cast<uint8_t>(from[i])], sizeof(uint16_t));
  }
}

void Cast(RowKind kind, const std::byte* from, uint64_t bytes, std::byte* to) {
  switch (kind) {
    case RowKind::kFloat32ToBfloat16: return CastFloats(from, bytes, to, ToBfloat16);
    case RowKind::kFloat32ToFloat16: return CastFloats(from, bytes, to, ToFloat16);
    case RowKind::kUint8ToFloat16: return CastBytes(from, bytes, to);
    case RowKind::kCopy:
    case RowKind::kMask: break;
  }
}

// Writes one row, but for bytes that are only copied, which it adds to `copies`.
void WriteRow(const Row& row, const RowPiece* pieces, std::byte* output,
              std::vector<kernels::Copy>* copies) {
  std::byte* const begin = output + row.destination;
  const auto at = [&](uint64_t window_offset) {
    return begin + window_offset / SourceBytes(row.kind) * OutputBytes(row.kind);
  };
  // The part of the window that has a source.
  const auto window_bytes = static_cast<int64_t>(row.window_bytes);
  const int64_t first = std::clamp(-row.window_begin, int64_t{0}, window_bytes);
  const int64_t last =
      std::clamp(static_cast<int64_t>(row.source_bytes) - row.window_begin, first, window_bytes);
  std::memset(begin, 0, at(first) - begin);
  std::memset(at(last), 0, at(window_bytes) - at(last));
  if (row.kind == RowKind::kMask) {
    std::memset(at(first), 1, last - first);
    return;
  }
  uint64_t position = first + row.window_begin;  // In the source; meaningless if nothing is there.
  const uint64_t end = last + row.window_begin;
  uint64_t piece_begin = 0;
  for (uint32_t i = 0; i < row.pieces && first < last; ++i) {
    const uint64_t stop = std::min(pieces[i].end, end);
    if (position < stop) {
      const std::byte* const from = pieces[i].data + (position - piece_begin);
      std::byte* const to = at(position - row.window_begin);
      if (row.kind == RowKind::kCopy) {
        copies->push_back({from, to, stop - position});
      } else {
        Cast(row.kind, from, stop - position, to);
      }
      position = stop;
    }
    piece_begin = pieces[i].end;
  }
}

}  // namespace

void GatherOnCpu(const RowList& list, std::byte* output, const kernels::GatherOptions& options) {
  std::vector<kernels::Copy> copies;
  copies.reserve(list.row_count);
  for (uint32_t i = 0; i < list.row_count; ++i) {
    WriteRow(list.rows[i], list.pieces + list.rows[i].first_piece, output, &copies);
  }
  kernels::Gather(copies, options);
}

}  // namespace gear_reverb::device
