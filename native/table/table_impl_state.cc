// A table as a whole, under its lock: what it says of itself, and how it is saved and replaced.
#include <algorithm>
#include <utility>
#include <vector>

#include "native/table/table_impl.h"

namespace gear_reverb::table {

bool Table::Impl::CanSample(int64_t n) const {
  base::MutexLock lock(&mutex_);
  return core_->CanSample(n);
}

bool Table::Impl::CanInsert(int64_t n) const {
  base::MutexLock lock(&mutex_);
  return core_->CanInsert(n);
}

int64_t Table::Impl::size() const {
  base::MutexLock lock(&mutex_);
  return core_->size();
}

void Table::Impl::FillInfo(TableInfo& info) const {
  info.waiting_inserts = inserts_.size();
  info.waiting_samples = samples_.size();
  if (!inserts_.empty()) info.blocked_insert = core_->limiter().WhyNotInsert(1);
  if (!samples_.empty()) info.blocked_sample = core_->limiter().WhyNotSample(1);
  info.time_inserting = absl::FromChrono(inserting_);
  info.time_sampling = absl::FromChrono(sampling_);
}

TableInfo Table::Impl::Info() const {
  TableInfo info;
  {
    base::MutexLock lock(&mutex_);
    info = core_->Info();
    FillInfo(info);
  }
  info.bytes = bytes_.bytes();
  return info;
}

TableSnapshot Table::Impl::Snapshot() const {
  // Memory is taken, and faulted in, before the lock.
  std::vector<Item> room(size());
  TableSnapshot snapshot;
  {
    base::MutexLock lock(&mutex_);
    snapshot = core_->Snapshot(std::move(room));
    FillInfo(snapshot.info);
  }
  for (Item& item : snapshot.items) item.Settle();
  std::stable_sort(snapshot.items.begin(), snapshot.items.end(),
                   [](const Item& a, const Item& b) { return a.inserted_at < b.inserted_at; });
  snapshot.info.bytes = bytes_.bytes();
  return snapshot;
}

absl::Status Table::Impl::Restore(const TableSnapshot& snapshot) {
  AfterLock after;
  absl::Status status;
  {
    base::MutexLock lock(&mutex_);
    status = core_->Restore(snapshot, &after.changes);
    Admit(after);
  }
  Run(after);
  return status;
}

absl::Status Table::Impl::DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities) {
  base::MutexLock lock(&mutex_);
  return core_->DrawKeys(keys, probabilities);
}

absl::Status Table::Impl::InsertKeys(absl::Span<const uint64_t> keys,
                                     absl::Span<const double> priorities) {
  AfterLock after;
  absl::Status status;
  {
    base::MutexLock lock(&mutex_);
    status = core_->InsertKeys(keys, priorities);
    Admit(after);
  }
  Run(after);
  return status;
}

void Table::Impl::Reset() {
  AfterLock after;
  {
    base::MutexLock lock(&mutex_);
    core_->Reset(&after.changes);
    Admit(after);
  }
  Run(after);
}

}  // namespace gear_reverb::table
