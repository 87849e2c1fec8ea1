// An item: a prioritized reference to a trajectory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::table {

struct Item {
  uint64_t key = 0;
  double priority = 0;
  int32_t times_sampled = 0;
  uint32_t slot = UINT32_MAX;  // Where the item lies in its table, for extensions only.
  absl::Time inserted_at = absl::InfinitePast();  // Set by the table when it inserts.
  storage::TrajectoryPtr trajectory;
  // Which of the rows that `trajectory` is the first of. Only within tables, and on the way there,
  // is it other than 0: so the rows of a chunk need no trajectory each.
  uint32_t row = 0;

  // From here on `trajectory` is the item's own.
  void Settle() {
    if (row != 0) trajectory = storage::TrajectoryBuilder::RowOf(trajectory, row);
    row = 0;
  }
};

// Item i gets row i of the rows that `first` is the first of.
inline void SetRows(const storage::TrajectoryPtr& first, absl::Span<Item> items) {
  first->AddRef(static_cast<uint32_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].trajectory = storage::TrajectoryPtr::Adopt(first.get());
    items[i].row = static_cast<uint32_t>(i);
  }
}

// An item as it was when drawn; `item.times_sampled` counts this draw.
struct SampledItem {
  Item item;
  double probability = 0;
  int64_t table_size = 0;
  bool rate_limited = false;  // Whether the draw had to wait.
};

struct KeyWithPriority {
  uint64_t key;
  double priority;
};

}  // namespace gear_reverb::table
