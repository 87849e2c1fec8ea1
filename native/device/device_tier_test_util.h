// Tables and items, for tests of tiers.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "native/batch/batch_test_util.h"
#include "native/table/table.h"

namespace gear_reverb::device {

// Evicts the oldest item, and waits for nobody.
inline std::shared_ptr<table::Table> TableOf(int64_t max_size, table::Placement placement = {}) {
  table::TableOptions options;
  options.name = "t";
  options.sampler = selectors::UniformOptions{};
  options.remover = selectors::FifoOptions{};
  options.max_size = max_size;
  options.rate_limiter = {1, 1, -1e12, 1e12};
  options.placement = placement;
  return *table::Table::Create(std::move(options));
}

// One column.
inline storage::TrajectoryPtr ItemOf(const std::vector<storage::ChunkPtr>& chunks) {
  storage::TrajectoryBuilder trajectory;
  trajectory.columns.push_back(batch::Whole(chunks));
  return std::move(trajectory).Build();
}

}  // namespace gear_reverb::device
