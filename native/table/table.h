// A table: items, how they are picked, when they may come and go.
//
// Thread-safe. One mutex guards everything and is held for arithmetic only: no byte is copied, no
// callback run and no chunk freed under it. Waiting on the rate limiter is a pair of fair
// queues (first come, first served) with deadlines; no thread is parked for an asynchronous call.
// A callback runs exactly once, in the thread that unblocked it (a caller of any method, or the
// timer thread), with no lock held; it may call the table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/base/philox.h"
#include "native/rate_limiter/rate_limiter.h"
#include "native/selectors/selector.h"
#include "native/table/extension.h"
#include "native/table/item.h"

namespace gear_reverb::table {

// The exact text that Reverb's clients look for in a DEADLINE_EXCEEDED status.
inline constexpr char kRateLimiterTimeout[] =
    "Rate Limiter: Timeout exceeded before the right to insert was acquired.";

// Where a device that samples the table keeps its columns: in the table's own memory alone, or
// copied to the device's, as far as `device_bytes` go (0: as the device sees fit).
struct Placement {
  bool on_device = false;
  uint64_t device_bytes = 0;
};

struct TableOptions {
  std::string name;
  selectors::SelectorOptions sampler;
  selectors::SelectorOptions remover;
  int64_t max_size = 0;
  int32_t max_times_sampled = 0;  // <= 0: no limit.
  rate_limiter::RateLimiterOptions rate_limiter;
  std::vector<std::shared_ptr<Extension>> extensions;
  std::string signature;  // Serialised StructuredValue; empty for none. Opaque here.
  Placement placement;    // Of no effect on the table itself.
  bool has_seed = false;  // Otherwise the seed is random.
  uint64_t seed = 0;
  // A call that has been first in its queue and waited so long is logged, again whenever its wait
  // has doubled.
  absl::Duration log_waiting_after = absl::Seconds(30);
};

struct TableInfo {
  std::string name;
  selectors::SelectorOptions sampler;
  selectors::SelectorOptions remover;
  int64_t max_size = 0;
  int32_t max_times_sampled = 0;
  rate_limiter::RateLimiterOptions rate_limiter;
  rate_limiter::RateLimiterCounts counts;
  std::string signature;
  int64_t current_size = 0;
  int64_t num_episodes = 0;          // Episodes with a live item.
  int64_t num_deleted_episodes = 0;  // Episodes whose last item went.
  int64_t num_unique_samples = 0;    // Items that were sampled at least once (oracle's meaning).
  int64_t num_unused_samples = 0;    // Samples that samplers reported as never used.
  int64_t bytes = 0;                 // Payload of the distinct chunks of live items.
  int64_t waiting_inserts = 0;
  int64_t waiting_samples = 0;
  std::string blocked_insert;  // Why the first waiting insert waits; "" if none.
  std::string blocked_sample;
  absl::Duration time_sampling, time_inserting;  // Spent under the lock.
};

// All of a table's state at one moment: items in order of insertion.
struct TableSnapshot {
  TableInfo info;
  std::vector<Item> items;
  uint64_t seed = 0, random_position = 0;
};

class Table : public std::enable_shared_from_this<Table> {
 public:
  using WaitId = uint64_t;  // 0: nothing waits (the callback has run or is about to).
  using InsertDone = absl::AnyInvocable<void(absl::Status)>;
  struct Insertion {
    Item item;
    InsertDone done;
  };
  using SampleDone = absl::AnyInvocable<void(absl::StatusOr<std::vector<SampledItem>>)>;
  using OnGrant = absl::AnyInvocable<void(int64_t)>;

  // INVALID_ARGUMENT naming the option.
  static absl::StatusOr<std::shared_ptr<Table>> Create(TableOptions options);
  ~Table();

  // Inserts when the limiter allows; a live key is updated in place (priority and trajectory
  // of the new item) at once, without counting as an insert. Then, while there are more than
  // max_size items, the remover picks one of all of them, the new one included. The trajectory
  // must have been checked. INVALID_ARGUMENT (priority not finite, or negative where a
  // Prioritized selector makes it a weight), DEADLINE_EXCEEDED, CANCELLED (Cancel or Close).
  WaitId InsertOrAssignAsync(Item item, absl::Time deadline, InsertDone done);
  absl::Status InsertOrAssign(Item item, absl::Time deadline = absl::InfiniteFuture());
  // The same, one after another, under one lock; the callbacks come after all of them.
  std::vector<WaitId> InsertOrAssignBatchAsync(std::vector<Insertion> batch, absl::Time deadline);

  // Inserts new items from the front, under one lock, for as long as the limiter allows, none waits
  // already and the keys are new; returns how many. What is left, the first of which may wait or
  // assign, is as it was. No element waits, is called back or costs an allocation here, which is
  // what bulk insertion wants. `status`: not OK if the first that is left failed, as above, or (and
  // then nothing is inserted) if any priority is invalid.
  int64_t InsertAtOnce(absl::Span<Item> items, absl::Status* status);

  // Draws between 1 and `max_items` items as soon as one may be drawn, one after another: an item
  // that reaches max_times_sampled is removed before the next draw. One call draws no more than
  // 16384 items. DEADLINE_EXCEEDED with kRateLimiterTimeout, CANCELLED, INVALID_ARGUMENT
  // (max_items < 1). With `random` the draws take their numbers from it, under the table's lock,
  // rather than from the table's own generator.
  WaitId SampleAsync(int64_t max_items, absl::Time deadline, SampleDone done,
                     std::shared_ptr<base::Philox> random = nullptr);
  absl::StatusOr<std::vector<SampledItem>> Sample(int64_t max_items,
                                                  absl::Time deadline = absl::InfiniteFuture());

  // Draws that are made elsewhere, by what mirrors the table through an extension: waits as Sample
  // does, and counts as many draws as the limiter allows, at most `max_items`. `on_grant` is called
  // with their number under the table's lock, when an extension has seen all changes before the
  // draws and none after. FAILED_PRECONDITION with max_times_sampled, under which every draw
  // changes the table; else the errors of Sample. CANCELLED soon after `stop` has become true.
  absl::Status GrantDraws(int64_t max_items, absl::Time deadline, OnGrant on_grant,
                          const std::atomic<bool>* stop = nullptr);
  // Which items such draws were of: adds to their times_sampled, and tells the extensions. Keys of
  // items that have gone are passed over.
  void CountDrawn(absl::Span<const uint64_t> keys);

  // Adds an observer: it sees the items there are as inserts, in order of insertion, then every
  // change. Takes time in proportion to the items, under the lock. Detach: it sees no more.
  void Attach(std::shared_ptr<Extension> extension);
  void Detach(const Extension* extension);

  // Takes a waiting call out of its queue; its callback gets CANCELLED. No effect if it is done.
  void Cancel(WaitId id);

  // Updates, then deletes; unknown keys are ignored. INVALID_ARGUMENT for a (so) negative or
  // infinite priority of a known key and for NaN, naming the key: then nothing changes. CANCELLED
  // once closed.
  absl::Status MutateItems(absl::Span<const KeyWithPriority> updates,
                           absl::Span<const uint64_t> deletes);

  // Removes all items and sets all counts to 0.
  void Reset();

  // Counts `n` > 0 samples that were drawn ahead of their use and then thrown away; no other
  // effect.
  void CountUnused(int64_t n);

  // Ends every waiting call, and every later insert, sample and mutation, with CANCELLED. Also the
  // destructor does; callbacks it runs must not call the table.
  void Close();
  // Takes Close back for later calls, for a table that goes from a stopped server to a new one.
  void Reopen();

  bool CanSample(int64_t n) const;
  bool CanInsert(int64_t n) const;
  const std::string& name() const;
  const Placement& placement() const;
  TableInfo info() const;
  int64_t size() const;

  TableSnapshot Snapshot() const;
  // Into an empty table of the same configuration (sizes and limiter options may differ): items in
  // order, counts, random position. Nothing is restored on an error: FAILED_PRECONDITION if not
  // empty, RESOURCE_EXHAUSTED if the items do not fit max_size, INVALID_ARGUMENT if the snapshot
  // contradicts itself.
  absl::Status Restore(const TableSnapshot& snapshot);

  // The selection path alone, for measurement: `n` draws' keys and probabilities under one lock,
  // without waiting or counting, FAILED_PRECONDITION on an empty table; and the bulk insertion of
  // new items without trajectories, ALREADY_EXISTS or RESOURCE_EXHAUSTED if one cannot be.
  absl::Status DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities);
  absl::Status InsertKeys(absl::Span<const uint64_t> keys, absl::Span<const double> priorities);

 private:
  class Impl;
  explicit Table(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl> impl_;  // Shared with timers for as long as they run.
};

}  // namespace gear_reverb::table
