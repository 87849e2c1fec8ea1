// The parts of TableCore that read or set all of a table's state.
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "native/base/status.h"
#include "native/table/table_core.h"

namespace gear_reverb::table {

TableInfo TableCore::Info() const {
  TableInfo info;
  info.name = options_.name;
  info.sampler = options_.sampler;
  info.remover = options_.remover;
  info.max_size = options_.max_size;
  info.max_times_sampled = options_.max_times_sampled;
  info.rate_limiter = limiter_.options();
  info.counts = limiter_.counts();
  info.signature = options_.signature;
  info.current_size = items_.size();
  info.num_episodes = episodes_.live();
  info.num_deleted_episodes = episodes_.deleted();
  info.num_unique_samples = num_unique_samples_;
  info.num_unused_samples = num_unused_samples_;
  return info;
}

TableSnapshot TableCore::Snapshot(std::vector<Item> items) const {
  TableSnapshot snapshot;
  snapshot.info = Info();
  snapshot.items = std::move(items);
  snapshot.items.clear();
  snapshot.items.reserve(items_.size());
  items_.ForEach([&](Slot slot) { snapshot.items.push_back(items_.Get(slot)); });
  snapshot.seed = random_.seed();
  snapshot.random_position = random_.position();
  return snapshot;
}

absl::Status TableCore::Restore(const TableSnapshot& snapshot, Changes* changes) {
  const std::string& name = options_.name;
  const int64_t size = snapshot.items.size();
  const rate_limiter::RateLimiterCounts& counts = snapshot.info.counts;
  if (items_.size() > 0) {
    return base::FailedPrecondition("Table ", name, " cannot be restored: it holds ", items_.size(),
                                    " items.");
  }
  if (size > options_.max_size) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Table ", name, " cannot be restored: the checkpoint holds ", size,
                     " items, which do not fit its max_size (", options_.max_size, ")."));
  }
  // (Compared in a way that cannot overflow.)
  if (counts.inserts < 0 || counts.samples < 0 || counts.deletes < 0 ||
      counts.inserts - counts.deletes != size) {
    return base::InvalidArgument("Table ", name, " cannot be restored: ", counts.inserts,
                                 " inserts, ", counts.samples, " samples and ", counts.deletes,
                                 " deletes do not fit ", size, " items.");
  }
  absl::flat_hash_set<uint64_t> keys;
  keys.reserve(size);
  for (const Item& item : snapshot.items) {
    GR_RETURN_IF_ERROR(CheckPriority(item.key, item.priority));
    if (!keys.insert(item.key).second) {
      return base::InvalidArgument("Table ", name, " cannot be restored: two items have the key ",
                                   item.key, ".");
    }
    if (item.times_sampled < 0) {
      return base::InvalidArgument("Table ", name, " cannot be restored: item ", item.key,
                                   " was sampled ", item.times_sampled, " times.");
    }
  }
  for (const Item& item : snapshot.items) {
    const absl::Status status = Add(Item(item), changes).status();
    if (!status.ok()) {
      Reset(changes);
      return status;
    }
  }
  limiter_.Restore(counts);
  episodes_.RestoreDeleted(snapshot.info.num_deleted_episodes);
  num_unique_samples_ = snapshot.info.num_unique_samples;
  random_ = base::Philox(snapshot.seed, snapshot.random_position);
  return absl::OkStatus();
}

absl::Status TableCore::InsertKeys(absl::Span<const uint64_t> keys,
                                   absl::Span<const double> priorities) {
  const int64_t n = keys.size();
  if (priorities.size() != keys.size()) {
    return base::InvalidArgument(n, " keys came with ", priorities.size(), " priorities.");
  }
  if (n > options_.max_size - items_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Table ", options_.name, " has no room for ", n, " more items."));
  }
  absl::flat_hash_set<uint64_t> distinct;
  distinct.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    GR_RETURN_IF_ERROR(CheckPriority(keys[i], priorities[i]));
    if (!distinct.insert(keys[i]).second || Contains(keys[i])) {
      return absl::AlreadyExistsError(
          absl::StrCat("Table ", options_.name, " has an item ", keys[i], " already."));
    }
  }
  const absl::Time now = absl::Now();
  slots_.clear();
  absl::Status status;
  for (int64_t i = 0; i < n && status.ok(); ++i) {
    Item item;
    item.key = keys[i];
    item.priority = priorities[i];
    item.inserted_at = now;
    const Slot slot = items_.Insert(std::move(item));
    if (slot == ItemStore::kNone) {
      status = absl::ResourceExhaustedError("No slot is left for another item.");
    } else {
      slots_.push_back(slot);
    }
  }
  if (status.ok()) status = sampler_->Insert(slots_, priorities);
  if (status.ok()) {
    status = remover_->Insert(slots_, priorities);
    if (!status.ok()) sampler_->Erase(slots_).IgnoreError();
  }
  if (!status.ok()) {
    for (const Slot slot : slots_) items_.Erase(slot);
    return status;
  }
  limiter_.CountInsert(n);
  for (const Slot slot : slots_) Notify(&Extension::OnInsert, slot);
  return absl::OkStatus();
}

}  // namespace gear_reverb::table
