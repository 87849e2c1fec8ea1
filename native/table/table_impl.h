// A table's lock, its queues of waiting calls, and what runs after the lock.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "native/base/mutex.h"
#include "native/base/timer.h"
#include "native/table/changes.h"
#include "native/table/counters.h"
#include "native/table/table.h"
#include "native/table/table_core.h"
#include "native/table/waiting_queue.h"

namespace gear_reverb::table {

// Thread-safe. Every operation is: under the lock, change the core and admit those waiting calls
// that the change allows; then, without it, count, call back, log and free. Timers hold weak
// references only.
class Table::Impl : public std::enable_shared_from_this<Table::Impl> {
 public:
  explicit Impl(std::unique_ptr<TableCore> core);

  WaitId Insert(Item item, absl::Time deadline, InsertDone done);
  std::vector<WaitId> InsertBatch(std::vector<Insertion> batch, absl::Time deadline);
  int64_t InsertAtOnce(absl::Span<Item> items, absl::Status* status);
  WaitId Sample(int64_t max_items, absl::Time deadline, SampleDone done,
                std::shared_ptr<base::Philox> random, OnGrant on_grant = nullptr);
  void Cancel(WaitId id);
  absl::Status Mutate(absl::Span<const KeyWithPriority> updates,
                      absl::Span<const uint64_t> deletes);
  void Reset();
  void CountUnused(int64_t n);
  void Attach(std::shared_ptr<Extension> extension);
  void Detach(const Extension* extension);
  void CountDrawn(absl::Span<const uint64_t> keys);
  void Close();
  void Reopen();
  bool CanSample(int64_t n) const;
  bool CanInsert(int64_t n) const;
  const std::string& name() const { return name_; }
  const Placement& placement() const { return placement_; }
  TableInfo Info() const;
  int64_t size() const;
  TableSnapshot Snapshot() const;
  absl::Status Restore(const TableSnapshot& snapshot);
  absl::Status DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities);
  absl::Status InsertKeys(absl::Span<const uint64_t> keys, absl::Span<const double> priorities);

 private:
  using InsertCall = Insertion;
  struct SampleCall {
    int64_t max_items;
    SampleDone done;
    std::shared_ptr<base::Philox> random;
    OnGrant on_grant;  // If the draws are made elsewhere.
  };
  using Samples = absl::StatusOr<std::vector<SampledItem>>;

  // Gathered under the lock, run after it.
  struct AfterLock {
    Changes changes;
    absl::InlinedVector<std::pair<InsertCall, absl::Status>, 1> inserts;
    absl::InlinedVector<std::pair<SampleCall, Samples>, 1> samples;
    std::vector<std::string> log;
  };
  void Run(AfterLock& after);

  template <typename Call>
  WaitId Wait(WaitingQueue<Call>& queue, Call call, base::SteadyTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WaitId InsertOrWait(InsertCall call, absl::Time deadline, AfterLock& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertNow(InsertCall call, AfterLock& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SampleNow(SampleCall call, bool rate_limited, std::vector<SampledItem> samples,
                 AfterLock& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Admits waiting inserts and samples in turn while the limiter allows.
  void Admit(AfterLock& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes sure that OnTimer is called when the next waiting call expires or is to be logged.
  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTimer();
  using WhyNot = std::string (rate_limiter::RateLimiter::*)(int64_t n) const;
  template <typename Call>
  void LogFirst(WaitingQueue<Call>& queue, const char* what, WhyNot why, base::SteadyTime now,
                AfterLock& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillInfo(TableInfo& info) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const Placement placement_;
  const base::SteadyTime::duration log_waiting_after_;
  ByteCounter bytes_;

  mutable base::Mutex mutex_;
  const std::unique_ptr<TableCore> core_ ABSL_PT_GUARDED_BY(mutex_);
  WaitingQueue<InsertCall> inserts_ ABSL_GUARDED_BY(mutex_);
  WaitingQueue<SampleCall> samples_ ABSL_GUARDED_BY(mutex_);
  WaitId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  base::SteadyTime timer_at_ ABSL_GUARDED_BY(mutex_) = base::kNever;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  base::SteadyTime::duration inserting_ ABSL_GUARDED_BY(mutex_){0};
  base::SteadyTime::duration sampling_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace gear_reverb::table
