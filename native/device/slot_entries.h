// A directory of a table's items by slot, in a device's memory, and what is done with it there:
// plain data and arithmetic that host and device code share.
//
// Every slot has an entry: the addresses of its item's columns, so many pieces for each column, and
// the item's priority. Pieces of a column that an item does not need are null, and its last ones.
#pragma once

#include <cstdint>

#include "native/device/exact_math.h"
#include "native/device/gather_rows.h"
#include "native/device/select_types.h"

namespace gear_reverb::device {

struct DirectoryView {
  RowPiece* pieces = nullptr;      // pieces_per_slot for each slot, column by column.
  double* priorities = nullptr;    // By slot.
  uint32_t pieces_per_slot = 0;    // A multiple of pieces_per_column.
  uint32_t pieces_per_column = 0;  // A power of two.
};

// New entries; within each of the two lists slots are distinct.
struct EntryChanges {
  const uint32_t* slots = nullptr;  // `count` of them, pieces_per_slot pieces each.
  const RowPiece* pieces = nullptr;
  const uint32_t* priority_slots = nullptr;  // `priority_count` of them.
  const double* priorities = nullptr;
  uint32_t count = 0;
  uint32_t priority_count = 0;

  GR_HOST_DEVICE uint64_t Steps(const DirectoryView& directory) const {
    return uint64_t{count} * directory.pieces_per_slot + priority_count;
  }
};

// Step i of Steps: the steps may be done in any order, or at once.
GR_HOST_DEVICE void WriteEntry(const DirectoryView& directory, const EntryChanges& changes,
                               uint64_t i) {
  const uint64_t pieces = uint64_t{changes.count} * directory.pieces_per_slot;
  if (i < pieces) {
    const uint32_t slot = changes.slots[i / directory.pieces_per_slot];
    directory.pieces[uint64_t{slot} * directory.pieces_per_slot + i % directory.pieces_per_slot] =
        changes.pieces[i];
  } else {
    directory.priorities[changes.priority_slots[i - pieces]] = changes.priorities[i - pieces];
  }
}

// What a column of items of different lengths has besides.
struct PickedSide {
  uint64_t step_bytes = 0;  // Of the items.
  uint64_t lengths = 0;     // Where in the output int32[count] is: steps by draw.
  uint64_t mask_rows = 0;   // The first of `count` rows of a mask, whose `source_bytes` are set.
  uint32_t wanted = 0;      // 0: the column has none of this.
};

// What a gather of drawn slots wants of the directory.
struct Picked {
  const uint32_t* slots = nullptr;  // Of `count` draws.
  uint32_t count = 0;
  // Column by column, then draw by draw: their `pieces` and `source_bytes` are set.
  Row* rows = nullptr;
  RowPiece* pieces = nullptr;         // Row by row, pieces_per_column for each.
  double* priorities = nullptr;       // By draw.
  const PickedSide* sides = nullptr;  // By column; null if items are equally long.
  std::byte* output = nullptr;

  GR_HOST_DEVICE uint64_t Steps(const DirectoryView& directory) const {
    return uint64_t{count} * (directory.pieces_per_slot + 1);
  }
};

// Likewise.
GR_HOST_DEVICE void Pick(const DirectoryView& directory, const Picked& picked, uint64_t i) {
  const uint32_t per_draw = directory.pieces_per_slot + 1;
  const auto draw = static_cast<uint32_t>(i / per_draw), j = static_cast<uint32_t>(i % per_draw);
  const uint64_t slot = picked.slots[draw];
  if (j == directory.pieces_per_slot) {
    picked.priorities[draw] = directory.priorities[slot];
    return;
  }
  const uint32_t per_column = directory.pieces_per_column;
  const uint64_t row = uint64_t{j / per_column} * picked.count + draw;
  const RowPiece* const piece = directory.pieces + slot * directory.pieces_per_slot + j;
  picked.pieces[row * per_column + j % per_column] = *piece;
  if (j % per_column != 0) return;
  uint32_t needed = 1;  // The first one is: and then all up to the last that is.
  for (uint32_t step = per_column / 2; step > 0; step /= 2) {
    if (piece[needed + step - 1].data != nullptr) needed += step;
  }
  const uint64_t bytes = piece[needed - 1].end;
  picked.rows[row].pieces = needed;
  picked.rows[row].source_bytes = bytes;
  if (picked.sides == nullptr) return;
  const PickedSide& side = picked.sides[j / per_column];
  if (side.wanted == 0) return;
  const uint64_t steps = bytes / side.step_bytes;
  reinterpret_cast<int32_t*>(picked.output + side.lengths)[draw] = static_cast<int32_t>(steps);
  picked.rows[side.mask_rows + draw].source_bytes = steps;
}

}  // namespace gear_reverb::device
