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
    if (room <= 0) changes->removed.reserve(changes->removed.size() + items.size());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("There is no memory left to insert items.");
  }
  return room > 0 ? AddMany(items, now) : ReplaceMany(items, now, changes);
}

absl::StatusOr<int64_t> TableCore::AddMany(absl::Span<Item> items, absl::Time now) {
  slots_.clear();
  priorities_.clear();
  absl::Status status;
  for (size_t i = 0; i < std::min(kNear, items.size()); ++i) items_.PrefetchIndex(items[i].key);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + kNear < items.size()) items_.PrefetchIndex(items[i + kNear].key);
    if (Contains(items[i].key)) break;
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
  for (const Slot slot : slots_) episodes_.Insert(items_.record(slot).trajectory);
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
    if (i >= items.size()) return;
    items_.PrefetchErase(slots_[i]);
    items_.PrefetchIndex(items[i].key);
  };
  for (size_t i = 0; i < kFar; ++i) fetch_far(i);
  for (size_t i = 0; i < kNear; ++i) fetch_near(i);
  for (size_t i = 0; i < items.size(); ++i) {
    fetch_far(i + kFar);
    fetch_near(i + kNear);
    if (Contains(items[i].key)) break;
    priorities_.push_back(items[i].priority);
    items[i].times_sampled = 0;
    items[i].inserted_at = now;
    episodes_.Insert(items[i].trajectory);
    changes->removed.push_back(items_.Replace(slots_[i], std::move(items[i])));
    episodes_.Erase(changes->removed.back());
  }
  slots_.resize(priorities_.size());
  GR_RETURN_IF_ERROR(sampler_->Replace(slots_, priorities_));
  GR_RETURN_IF_ERROR(remover_->Replace(slots_, priorities_));
  limiter_.CountInsert(slots_.size());
  limiter_.CountDelete(slots_.size());
  return slots_.size();
}

}  // namespace gear_reverb::table
