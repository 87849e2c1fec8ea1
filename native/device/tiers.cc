#include "native/device/tiers.h"

#include <utility>

namespace gear_reverb::device {

std::shared_ptr<DeviceTier> Tiers::Of(
    const std::shared_ptr<table::Table>& table,
    const std::function<std::unique_ptr<TierMemory>()>& new_memory) {
  if (!table->placement().on_device) return nullptr;
  base::MutexLock lock(&mutex_);
  std::erase_if(tiers_, [](const OfTable& of) { return of.tier.expired(); });
  for (const OfTable& of : tiers_) {
    auto tier = of.tier.lock();
    if (tier != nullptr && of.table.lock() == table) return tier;
  }
  TierOptions options;
  options.limit_bytes = table->placement().device_bytes;
  auto tier = std::make_shared<DeviceTier>(table->name(), new_memory(), options);
  table->Attach(tier);
  tiers_.push_back({table, tier});
  return tier;
}

std::vector<TierStats> Tiers::stats() const {
  std::vector<TierStats> stats;
  base::MutexLock lock(&mutex_);
  for (const OfTable& of : tiers_) {
    if (const auto tier = of.tier.lock()) stats.push_back(tier->stats());
  }
  return stats;
}

}  // namespace gear_reverb::device
