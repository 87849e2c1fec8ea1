// An item: a prioritized reference to a trajectory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::table {

struct Item {
  uint64_t key = 0;
  double priority = 0;
  int32_t times_sampled = 0;
  uint32_t slot = UINT32_MAX;  // Where the item lies in its table, for extensions only.
  absl::Time inserted_at = absl::InfinitePast();  // Set by the table when it inserts.
  storage::TrajectoryPtr trajectory;
};

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
