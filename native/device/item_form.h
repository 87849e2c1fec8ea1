// What items have in common that a device gathers by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "native/storage/trajectory.h"
#include "native/tensor/dtype.h"
#include "native/tensor/shape.h"

namespace gear_reverb::device {

struct ItemColumn {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape step_shape;
  int64_t steps = 0;  // Of each, or with padding of the longest.
  bool squeezed = false;
  uint64_t step_bytes = 0;

  uint64_t bytes() const { return steps * step_bytes; }
  bool operator==(const ItemColumn&) const = default;
};

// Columns that differ in length from item to item are filled up.
struct Padding {
  int64_t steps = 0;  // To so many; 0: to as many as the longest item has that was ever there.
};

struct ItemForm {
  // Writers that choose their chunks' lengths put 1024 steps into up to 200.
  static constexpr uint32_t kMostPieces = 256;

  ItemForm() = default;
  // Of one item.
  ItemForm(const storage::Trajectory& item, const std::optional<Padding>& padding);

  // But for the columns' lengths.
  bool IsLike(const storage::Trajectory& item) const;
  // Adds an item to those that this is the form of. FAILED_PRECONDITION, saying why, if it is not
  // alike, or is such as no device gathers by itself.
  absl::Status Add(const storage::Trajectory& item, const std::optional<Padding>& padding);
  // Pieces of a column that items to come are likely to have at most.
  uint32_t RoomInPlace(const std::optional<Padding>& padding) const;

  std::vector<ItemColumn> columns;
  // Whether within each item all columns with a step axis are equally long.
  bool lengths_agree = true;
  uint32_t most_pieces = 1;  // Of a column.
  int64_t longest = 1;       // Steps of a column.
};

}  // namespace gear_reverb::device
