// What lets something outside mirror a table and draw from the mirror.
#include <algorithm>
#include <utility>
#include <vector>

#include "native/base/status.h"
#include "native/table/table_impl.h"

namespace gear_reverb::table {

void TableCore::Attach(std::shared_ptr<Extension> extension) {
  extension->OnAttach(options_.name);
  std::vector<std::pair<int64_t, Slot>> slots;  // With times of insertion, which are distinct.
  slots.reserve(items_.size());
  items_.ForEach([&](Slot slot) { slots.emplace_back(items_.record(slot).inserted_at_ns, slot); });
  std::sort(slots.begin(), slots.end());
  for (const auto& [time, slot] : slots) {
    items_.Settle(slot);  // Extensions may tell trajectories by their addresses.
    Item item = items_.Get(slot);
    item.slot = slot;
    extension->OnInsert(item);
  }
  options_.extensions.push_back(std::move(extension));
}

void TableCore::Detach(const Extension* extension) {
  std::erase_if(options_.extensions, [&](const auto& each) { return each.get() == extension; });
}

absl::StatusOr<int64_t> TableCore::Grant(int64_t max_items) {
  if (options_.max_times_sampled > 0) {
    return base::FailedPrecondition("Table ", options_.name, " has max_times_sampled (",
                                    options_.max_times_sampled, "), so its own sampler must draw.");
  }
  const int64_t granted = limiter_.SampleAllowance(max_items);
  limiter_.CountSample(granted);
  return granted;
}

void TableCore::CountDrawn(absl::Span<const uint64_t> keys) {
  for (const uint64_t key : keys) {
    if (const Slot slot = items_.Find(key); slot != ItemStore::kNone) CountDraw(slot);
  }
}

void Table::Impl::Attach(std::shared_ptr<Extension> extension) {
  base::MutexLock lock(&mutex_);
  core_->Attach(std::move(extension));
}

void Table::Impl::Detach(const Extension* extension) {
  base::MutexLock lock(&mutex_);
  core_->Detach(extension);
}

void Table::Impl::CountDrawn(absl::Span<const uint64_t> keys) {
  base::MutexLock lock(&mutex_);
  core_->CountDrawn(keys);
}

}  // namespace gear_reverb::table
