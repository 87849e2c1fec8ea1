// A table without its lock and its queues: items, selectors, limiter, counters and observers, kept
// in step with each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/base/philox.h"
#include "native/rate_limiter/rate_limiter.h"
#include "native/selectors/selector.h"
#include "native/table/changes.h"
#include "native/table/counters.h"
#include "native/table/item_store.h"
#include "native/table/table.h"

namespace gear_reverb::table {

// Thread-compatible. Nothing waits, and no chunk is freed, here: see Changes. Whether the
// limiter allows an insert or a draw is for the caller to ask.
class TableCore {
 public:
  // More draws than this are left to another call, so that no call holds the lock for long.
  static constexpr int64_t kMaxDraws = 16384;

  static absl::StatusOr<std::unique_ptr<TableCore>> Create(TableOptions options);

  bool Contains(uint64_t key) const { return items_.Find(key) != ItemStore::kNone; }
  bool CanInsert(int64_t n) const { return limiter_.CanInsert(n); }
  bool CanSample(int64_t n) const { return items_.size() > 0 && limiter_.CanSample(n); }

  // A new key: inserts, then lets the remover pick among all items, the new one included, while
  // there are more than max_size.
  absl::Status Insert(Item&& item, absl::Time now, Changes* changes);
  // Inserts new items from the front as Insert would one after another, and returns how many; stops
  // before a live key, and where the limiter does. May stop earlier, also before the first, for
  // Insert to go on. `changes` counts the bytes of what is added already. Not OK, with nothing
  // inserted, if there is no memory.
  absl::StatusOr<int64_t> InsertMany(absl::Span<Item> items, absl::Time now, Changes* changes);
  // A live key: takes over priority and trajectory.
  absl::Status Assign(Item&& item, Changes* changes);
  // Up to `max_items` draws, as many as the limiter allows, appended to `samples`, not settled; by
  // the table's generator if `random` is null.
  absl::Status Sample(int64_t max_items, bool rate_limited, base::Philox* random,
                      std::vector<SampledItem>* samples, Changes* changes);
  // No more than were drawn, whatever a client says.
  void CountUnused(int64_t n) {
    num_unused_samples_ += std::min(n, limiter_.counts().samples - num_unused_samples_);
  }
  absl::Status Mutate(absl::Span<const KeyWithPriority> updates, absl::Span<const uint64_t> deletes,
                      Changes* changes);
  void Reset(Changes* changes);

  // Adds an observer, which is told of the items there are in order of insertion, or removes one.
  void Attach(std::shared_ptr<Extension> extension);
  void Detach(const Extension* extension);
  // The right to up to `max_items` draws that are made elsewhere: counts as many as the limiter
  // allows, and returns how many. FAILED_PRECONDITION with max_times_sampled.
  absl::StatusOr<int64_t> Grant(int64_t max_items);
  // Counts what such draws were of, for the items that are still there.
  void CountDrawn(absl::Span<const uint64_t> keys);

  // All but what the lock's owner knows: bytes, waiting calls, times.
  TableInfo Info() const;
  // The items come by slot and not settled; sort them by time of insertion, for which no lock is
  // needed. `items` may come with room for them, which saves time.
  TableSnapshot Snapshot(std::vector<Item> items) const;
  absl::Status Restore(const TableSnapshot& snapshot, Changes* changes);

  absl::Status DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities);
  absl::Status InsertKeys(absl::Span<const uint64_t> keys, absl::Span<const double> priorities);

  // INVALID_ARGUMENT naming the key, unless `priority` is finite and, where it is a weight, not
  // negative. Needs no lock.
  absl::Status CheckPriority(uint64_t key, double priority) const;

  int64_t size() const { return items_.size(); }
  const rate_limiter::RateLimiter& limiter() const { return limiter_; }
  const TableOptions& options() const { return options_; }

 private:
  TableCore(TableOptions options, std::unique_ptr<selectors::Selector> sampler,
            std::unique_ptr<selectors::Selector> remover, rate_limiter::RateLimiter limiter);

  absl::StatusOr<Slot> Add(Item&& item, Changes* changes);
  // The parts of InsertMany: into free room, and each in place of what the remover takes next.
  absl::StatusOr<int64_t> AddMany(absl::Span<Item> items, absl::Time now);
  absl::StatusOr<int64_t> ReplaceMany(absl::Span<Item> items, absl::Time now, Changes* changes);
  // Takes items out of everything but the selectors, and counts the deletes.
  void Forget(absl::Span<const Slot> slots, Changes* changes);
  absl::Status Delete(absl::Span<const Slot> slots, Changes* changes);
  void CountDraw(Slot slot);
  // Counts one draw of the slot and appends it.
  void Append(const selectors::Draw& draw, bool rate_limited, std::vector<SampledItem>* samples);
  void Notify(void (Extension::*event)(const Item&), Slot slot);

  TableOptions options_;       // Constant but for the extensions.
  const bool takes_negative_;  // Priorities below 0.
  ItemStore items_;
  const std::unique_ptr<selectors::Selector> sampler_, remover_;
  rate_limiter::RateLimiter limiter_;
  base::Philox random_;
  EpisodeCounter episodes_;
  int64_t num_unique_samples_ = 0;
  int64_t num_unused_samples_ = 0;
  // Scratch space, kept for its capacity.
  std::vector<selectors::Draw> draws_;
  std::vector<Slot> slots_;
  std::vector<double> priorities_;
};

}  // namespace gear_reverb::table
