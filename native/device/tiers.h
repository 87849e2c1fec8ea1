// The tiers of one device, a table's each.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/device/device_tier.h"
#include "native/table/table.h"

namespace gear_reverb::device {

// Thread-safe. The tables own the tiers: one lasts as long as its table does.
class Tiers {
 public:
  // The tier of `table`, made, and attached to the table, the first time. Null for a table that is
  // not placed on devices.
  std::shared_ptr<DeviceTier> Of(const std::shared_ptr<table::Table>& table,
                                 const std::function<std::unique_ptr<TierMemory>()>& new_memory);

  std::vector<TierStats> stats() const;

 private:
  struct OfTable {
    std::weak_ptr<table::Table> table;
    std::weak_ptr<DeviceTier> tier;
  };
  mutable base::Mutex mutex_;
  std::vector<OfTable> tiers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::device
