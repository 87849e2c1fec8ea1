// What an operation under a table's lock leaves to be done after it.
#pragma once

#include "absl/container/inlined_vector.h"
#include "native/storage/trajectory.h"
#include "native/table/item_store.h"

namespace gear_reverb::table {

struct Changes {
  using Trajectories = absl::InlinedVector<storage::TrajectoryPtr, 2>;

  // Trajectories that items began and ceased to refer to: to be counted, then let go.
  Trajectories added, removed;
  // Whoever inserts has done so: `added` does not tell those of new items.
  bool bytes_of_added_are_counted = false;
  // Whole contents that a reset threw out: to be counted as removed.
  std::vector<ItemStore> cleared;
};

}  // namespace gear_reverb::table
