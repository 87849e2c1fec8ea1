#include "native/table/table_impl.h"

#include <algorithm>
#include <new>

#include "absl/time/clock.h"
#include "native/base/finite.h"
#include "native/base/log.h"
#include "native/base/prefetch.h"
#include "native/base/status.h"

namespace gear_reverb::table {
namespace {

absl::Status Closed(const std::string& name) {
  return absl::CancelledError(absl::StrCat("Table ", name, " has been closed."));
}
absl::Status Cancelled() { return absl::CancelledError("The call was cancelled."); }
absl::Status Expired() { return absl::DeadlineExceededError(kRateLimiterTimeout); }

// kNever stays kNever, whatever is added.
base::SteadyTime After(base::SteadyTime time, base::SteadyTime::duration wait) {
  return wait > base::kNever - time ? base::kNever : time + wait;
}

// In groups, whose cache misses overlap: an item of a row refers to others' memory. Without memory
// the samples, which are counted, become an error.
void Settle(absl::StatusOr<std::vector<SampledItem>>& samples) {
  constexpr size_t kGroup = 32;
  if (!samples.ok()) return;
  try {
    for (auto rest = absl::MakeSpan(*samples); !rest.empty();) {
      const auto group = rest.first(std::min(kGroup, rest.size()));
      for (const SampledItem& sample : group) {
        if (sample.item.row == 0) continue;
        base::Prefetch(sample.item.trajectory->columns[0].slices[0].chunk.get());
      }
      for (SampledItem& sample : group) sample.item.Settle();
      rest.remove_prefix(group.size());
    }
  } catch (const std::bad_alloc&) {
    samples = absl::ResourceExhaustedError("There is no memory left for what was drawn.");
  }
}

}  // namespace

Table::Impl::Impl(std::unique_ptr<TableCore> core)
    : name_(core->options().name),
      placement_(core->options().placement),
      log_waiting_after_(absl::ToChronoNanoseconds(
          std::max(core->options().log_waiting_after, absl::Milliseconds(1)))),
      core_(std::move(core)) {}

void Table::Impl::Run(AfterLock& after) {
  bytes_.Change(after.changes.added, after.changes.removed);
  for (const ItemStore& items : after.changes.cleared) {
    items.ForEach([&](Slot slot) { bytes_.Change({}, {&items.record(slot).trajectory, 1}); });
  }
  for (auto& [call, status] : after.inserts) std::move(call.done)(std::move(status));
  for (auto& [call, samples] : after.samples) {
    Settle(samples);
    std::move(call.done)(std::move(samples));
  }
  for (const std::string& line : after.log) base::Log(base::LogLevel::kWarning, line);
  storage::Trajectory::ReleaseAll(absl::MakeSpan(after.changes.removed));
}

template <typename Call>
Table::WaitId Table::Impl::Wait(WaitingQueue<Call>& queue, Call call, base::SteadyTime deadline) {
  const base::SteadyTime now = base::SteadyNow();
  queue.Push(++last_id_, {std::move(call), deadline, now, After(now, log_waiting_after_)});
  SetTimer();
  return last_id_;
}

Table::WaitId Table::Impl::Insert(Item item, absl::Time deadline, InsertDone done) {
  AfterLock after;
  WaitId id;
  {
    base::MutexLock lock(&mutex_);
    id = InsertOrWait({std::move(item), std::move(done)}, deadline, after);
  }
  Run(after);
  return id;
}

std::vector<Table::WaitId> Table::Impl::InsertBatch(std::vector<Insertion> batch,
                                                    absl::Time deadline) {
  AfterLock after;
  std::vector<WaitId> ids;
  ids.reserve(batch.size());
  {
    base::MutexLock lock(&mutex_);
    for (Insertion& call : batch) ids.push_back(InsertOrWait(std::move(call), deadline, after));
  }
  Run(after);
  return ids;
}

int64_t Table::Impl::InsertAtOnce(absl::Span<Item> items, absl::Status* status) {
  *status = absl::OkStatus();
  for (const Item& item : items) {
    if (base::IsFiniteNotNegative(item.priority)) continue;
    *status = core_->CheckPriority(item.key, item.priority);
    if (!status->ok()) return 0;
  }
  // Before the lock, since afterwards the trajectories belong to the table.
  bytes_.Change(items, 1);
  AfterLock after;
  after.changes.bytes_of_added_are_counted = true;
  size_t done = 0;
  {
    base::MutexLock lock(&mutex_);
    const base::SteadyTime start = base::SteadyNow();
    const absl::Time now = absl::Now();
    if (closed_) *status = Closed(name_);
    while (done < items.size() && status->ok() && inserts_.empty()) {
      if (samples_.empty()) {
        const auto many = core_->InsertMany(items.subspan(done), now, &after.changes);
        *status = many.status();
        if (!many.ok()) break;
        done += *many;
        if (*many > 0) continue;
      }
      Item& item = items[done];
      if (!core_->CanInsert(1) || core_->Contains(item.key)) break;
      *status = core_->Insert(std::move(item), now, &after.changes);
      if (!status->ok()) break;
      ++done;
      Admit(after);
    }
    inserting_ += base::SteadyNow() - start;
  }
  bytes_.Change(items.subspan(done), -1);
  Run(after);
  return static_cast<int64_t>(done);
}

Table::WaitId Table::Impl::InsertOrWait(InsertCall call, absl::Time deadline, AfterLock& after) {
  absl::Status valid = core_->CheckPriority(call.item.key, call.item.priority);
  if (!valid.ok()) {
    after.inserts.emplace_back(std::move(call), std::move(valid));
  } else if (closed_) {
    after.inserts.emplace_back(std::move(call), Closed(name_));
  } else if (core_->Contains(call.item.key) || (inserts_.empty() && core_->CanInsert(1))) {
    InsertNow(std::move(call), after);
    Admit(after);
  } else if (deadline <= absl::Now()) {
    after.inserts.emplace_back(std::move(call), Expired());
  } else {
    return Wait(inserts_, std::move(call), base::ToSteady(deadline));
  }
  return 0;
}

Table::WaitId Table::Impl::Sample(int64_t max_items, absl::Time deadline, SampleDone done,
                                  std::shared_ptr<base::Philox> random, OnGrant on_grant) {
  SampleCall call{max_items, std::move(done), std::move(random), std::move(on_grant)};
  AfterLock after;
  WaitId id = 0;
  if (max_items < 1) {
    after.samples.emplace_back(std::move(call),
                               base::InvalidArgument("max_items (", max_items, ") must be >= 1"));
  } else {
    std::vector<SampledItem> room;
    room.reserve(std::min<int64_t>(max_items, 256));
    base::MutexLock lock(&mutex_);
    if (closed_) {
      after.samples.emplace_back(std::move(call), Closed(name_));
    } else if (samples_.empty() && core_->CanSample(1)) {
      SampleNow(std::move(call), false, std::move(room), after);
      Admit(after);
    } else if (deadline <= absl::Now()) {
      after.samples.emplace_back(std::move(call), Expired());
    } else {
      id = Wait(samples_, std::move(call), base::ToSteady(deadline));
    }
  }
  Run(after);
  return id;
}

void Table::Impl::InsertNow(InsertCall call, AfterLock& after) {
  const base::SteadyTime start = base::SteadyNow();
  absl::Status status = core_->Contains(call.item.key)
                            ? core_->Assign(std::move(call.item), &after.changes)
                            : core_->Insert(std::move(call.item), absl::Now(), &after.changes);
  inserting_ += base::SteadyNow() - start;
  after.inserts.emplace_back(std::move(call), std::move(status));
}

void Table::Impl::SampleNow(SampleCall call, bool rate_limited, std::vector<SampledItem> samples,
                            AfterLock& after) {
  if (call.on_grant) {
    absl::StatusOr<int64_t> granted = core_->Grant(call.max_items);
    if (granted.ok()) call.on_grant(*granted);
    after.samples.emplace_back(std::move(call),
                               granted.ok() ? Samples(std::move(samples)) : granted.status());
    return;
  }
  const base::SteadyTime start = base::SteadyNow();
  absl::Status status =
      core_->Sample(call.max_items, rate_limited, call.random.get(), &samples, &after.changes);
  sampling_ += base::SteadyNow() - start;
  // What was drawn is counted, so it is given out even if a later draw failed.
  if (samples.empty() && !status.ok()) {
    after.samples.emplace_back(std::move(call), std::move(status));
  } else {
    after.samples.emplace_back(std::move(call), std::move(samples));
  }
}

void Table::Impl::Admit(AfterLock& after) {
  bool admitted = true;
  while (admitted) {
    admitted = false;
    if (!inserts_.empty() &&
        (core_->CanInsert(1) || core_->Contains(inserts_.front().call.item.key))) {
      InsertNow(inserts_.PopFront(), after);
      admitted = true;
    }
    if (!samples_.empty() && core_->CanSample(1)) {
      SampleNow(samples_.PopFront(), true, {}, after);
      admitted = true;
    }
    if (admitted) SetTimer();  // For the calls that are first now.
  }
}

void Table::Impl::SetTimer() {
  const base::SteadyTime next = std::min(inserts_.NextEvent(), samples_.NextEvent());
  if (next >= timer_at_) return;  // It is set, and sets itself anew.
  timer_at_ = next;
  base::Timer::Get().Schedule(next, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnTimer();
  });
}

void Table::Impl::OnTimer() {
  AfterLock after;
  {
    base::MutexLock lock(&mutex_);
    const base::SteadyTime now = base::SteadyNow();
    while (auto call = inserts_.PopExpired(now)) {
      after.inserts.emplace_back(*std::move(call), Expired());
    }
    while (auto call = samples_.PopExpired(now)) {
      after.samples.emplace_back(*std::move(call), Expired());
    }
    Admit(after);
    LogFirst(inserts_, "insert", &rate_limiter::RateLimiter::WhyNotInsert, now, after);
    LogFirst(samples_, "sample", &rate_limiter::RateLimiter::WhyNotSample, now, after);
    if (timer_at_ <= now) timer_at_ = base::kNever;
    SetTimer();
  }
  Run(after);
}

template <typename Call>
void Table::Impl::LogFirst(WaitingQueue<Call>& queue, const char* what, WhyNot why,
                           base::SteadyTime now, AfterLock& after) {
  if (queue.empty() || queue.front().log_at > now) return;
  const auto waited = now - queue.front().since;
  queue.front().log_at = After(now, waited);
  after.log.push_back(absl::StrCat(
      "Table ", name_, ": ", queue.size(), " waiting ", what, " call(s), the first for ",
      absl::FormatDuration(absl::Trunc(absl::FromChrono(waited), absl::Milliseconds(1))), ": ",
      (core_->limiter().*why)(1)));
}

void Table::Impl::Cancel(WaitId id) {
  AfterLock after;
  {
    base::MutexLock lock(&mutex_);
    if (auto insert = inserts_.Remove(id)) {
      after.inserts.emplace_back(*std::move(insert), Cancelled());
    } else if (auto sample = samples_.Remove(id)) {
      after.samples.emplace_back(*std::move(sample), Cancelled());
    }
    Admit(after);  // The next insert may be one of a live key.
    SetTimer();
  }
  Run(after);
}

absl::Status Table::Impl::Mutate(absl::Span<const KeyWithPriority> updates,
                                 absl::Span<const uint64_t> deletes) {
  AfterLock after;
  absl::Status status;
  {
    base::MutexLock lock(&mutex_);
    if (closed_) return Closed(name_);
    status = core_->Mutate(updates, deletes, &after.changes);
    Admit(after);
  }
  Run(after);
  return status;
}

void Table::Impl::CountUnused(int64_t n) {
  base::MutexLock lock(&mutex_);
  core_->CountUnused(n);
}

void Table::Impl::Close() {
  AfterLock after;
  {
    base::MutexLock lock(&mutex_);
    closed_ = true;
    while (!inserts_.empty()) after.inserts.emplace_back(inserts_.PopFront(), Closed(name_));
    while (!samples_.empty()) after.samples.emplace_back(samples_.PopFront(), Closed(name_));
  }
  Run(after);
}

void Table::Impl::Reopen() {
  base::MutexLock lock(&mutex_);
  closed_ = false;
}

}  // namespace gear_reverb::table
