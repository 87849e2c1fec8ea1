// Insertion of many items at a time: what is done per item is a record, two steps in the index and
// what the selectors do; the memory that it meets is fetched ahead.
#include <algorithm>
#include <new>
#include <utility>

#include "native/base/status.h"
#include "native/table/table_core.h"

namespace gear_reverb::table {
namespace {

// How many items ahead memory is fetched, and what that memory leads to.
constexpr size_t kFar = 32, kNear = 16;

// Asks for keys that follow each other together, and has the index near when it does.
class NewKeys {
 public:
  NewKeys(const ItemStore& store, absl::Span<const Item> items) : store_(store), items_(items) {
    for (size_t i = 0; i < kDistances[0]; ++i) Fetch(i, 0);
  }

  // Whether item `i` has a new key; if so, the store has it before the next is asked for.
  bool IsNew(size_t i) {
    for (int passed = 0; passed < 3; ++passed) Fetch(i + kDistances[passed], passed);
    if (i < known_) return true;
    uint64_t keys[SlotIndex::kNeighbours] = {items_[i].key};
    size_t n = 1;
    while (i + n < items_.size() && items_[i + n].key > keys[n - 1] &&
           SlotIndex::AreNeighbours(items_[i + n].key, keys[0])) {
      keys[n] = items_[i + n].key;
      ++n;
    }
    // One that is here may go until it matters.
    if (store_.ContainsAny({keys, n})) return store_.Find(keys[0]) == ItemStore::kNone;
    known_ = i + n;
    return true;
  }

 private:
  // How many items ahead the index is fetched, bucket by bucket.
  static constexpr size_t kDistances[] = {24, 16, 8};

  void Fetch(size_t i, int passed) {
    if (i >= items_.size()) return;
    const uint64_t key = items_[i].key;
    if (i > 0 && SlotIndex::AreNeighbours(key, items_[i - 1].key)) return;
    store_.PrefetchIndex(key, passed);
  }

  const ItemStore& store_;
  const absl::Span<const Item> items_;
  size_t known_ = 0;  // Those before are new.
};

// Counts the episodes of items that take the place of others, run by run of the same trajectories:
// an episode ends with its last item, so all is as if it were done one by one.
class EpisodeRuns {
 public:
  explicit EpisodeRuns(EpisodeCounter* episodes) : episodes_(*episodes) {}
  // Both live until Flush, which comes last.
  void Replace(const storage::Trajectory* removed, const storage::Trajectory* added) {
    if (removed != removed_ || added != added_) Flush();
    removed_ = removed;
    added_ = added;
    ++items_;
  }
  void Flush() {
    if (items_ == 0) return;
    episodes_.Insert(added_, items_);
    episodes_.Erase(removed_, std::exchange(items_, 0));
  }

 private:
  EpisodeCounter& episodes_;
  const storage::Trajectory* removed_ = nullptr;
  const storage::Trajectory* added_ = nullptr;
  int64_t items_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> TableCore::InsertMany(absl::Span<Item> items, absl::Time now,
                                              Changes* changes) {
  if (!options_.extensions.empty()) return 0;  // They see every change as it happens.
  const int64_t allowed = limiter_.InsertAllowance(items.size());
  const int64_t room = std::min(allowed, options_.max_size - items_.size());
  items = items.first(room > 0 ? room : std::min(allowed, items_.size()));
  try {
    // Then nothing below is short of memory half-way.
    slots_.reserve(items.size());
    priorities_.reserve(items.size());
    episodes_.Reserve(items.size());
    if (room <= 0) changes->removed.reserve(changes->removed.size() + items.size());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("There is no memory left to insert items.");
  }
  items_.ExpectMany();
  return room > 0 ? AddMany(items, now) : ReplaceMany(items, now, changes);
}

absl::StatusOr<int64_t> TableCore::AddMany(absl::Span<Item> items, absl::Time now) {
  slots_.clear();
  priorities_.clear();
  absl::Status status;
  NewKeys keys(items_, items);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!keys.IsNew(i)) break;
    const double priority = items[i].priority;
    items[i].times_sampled = 0;
    items[i].inserted_at = now;
    const Slot slot = items_.Insert(std::move(items[i]));
    if (slot == ItemStore::kNone) break;  // Insert says so.
    slots_.push_back(slot);
    priorities_.push_back(priority);
  }
  status = sampler_->Insert(slots_, priorities_);
  if (status.ok()) {
    status = remover_->Insert(slots_, priorities_);
    if (!status.ok()) sampler_->Erase(slots_).IgnoreError();
  }
  if (!status.ok()) {
    for (size_t i = 0; i < slots_.size(); ++i) items[i].trajectory = items_.Erase(slots_[i]);
    return status;
  }
  for (const Slot slot : slots_) episodes_.Insert(items_.record(slot).trajectory.get());
  limiter_.CountInsert(slots_.size());
  return slots_.size();
}

absl::StatusOr<int64_t> TableCore::ReplaceMany(absl::Span<Item> items, absl::Time now,
                                               Changes* changes) {
  slots_.resize(items.size());
  if (!remover_->NextOut(absl::MakeSpan(slots_))) return 0;
  priorities_.clear();
  const auto fetch_far = [&](size_t i) {
    if (i < items.size()) items_.Prefetch(slots_[i]);
  };
  const auto fetch_near = [&](size_t i) {
    if (i < items.size()) items_.PrefetchErase(slots_[i]);
  };
  NewKeys keys(items_, items);
  EpisodeRuns episodes(&episodes_);
  for (size_t i = 0; i < kFar; ++i) fetch_far(i);
  for (size_t i = 0; i < kNear; ++i) fetch_near(i);
  for (size_t i = 0; i < items.size(); ++i) {
    fetch_far(i + kFar);
    fetch_near(i + kNear);
    if (!keys.IsNew(i)) break;
    priorities_.push_back(items[i].priority);
    items[i].times_sampled = 0;
    items[i].inserted_at = now;
    const storage::Trajectory* const added = items[i].trajectory.get();
    changes->removed.push_back(items_.Replace(slots_[i], std::move(items[i])));
    episodes.Replace(changes->removed.back().get(), added);
  }
  episodes.Flush();
  slots_.resize(priorities_.size());
  GR_RETURN_IF_ERROR(sampler_->Replace(slots_, priorities_));
  GR_RETURN_IF_ERROR(remover_->Replace(slots_, priorities_));
  limiter_.CountInsert(slots_.size());
  limiter_.CountDelete(slots_.size());
  return slots_.size();
}

}  // namespace gear_reverb::table
