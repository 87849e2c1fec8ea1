#include "native/table/table.h"

#include <atomic>
#include <optional>
#include <utility>

#include "native/base/interrupt.h"
#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/table/table_impl.h"

namespace gear_reverb::table {
namespace {

// Where a synchronous call waits for the result of its asynchronous twin.
template <typename Result>
class Pending {
 public:
  void Set(Result result) {
    base::MutexLock lock(&mutex_);
    result_.emplace(std::move(result));
    changed_.NotifyAll();
  }

  // `cancel` must bring about a result. It is called when the program interrupts the wait, or soon
  // after `stop`, if given, has become true.
  template <typename Cancel>
  Result Wait(Cancel cancel, const std::atomic<bool>* stop = nullptr) {
    base::MutexLock lock(&mutex_);
    const auto done = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return result_.has_value(); };
    const auto over = [&] { return done() || (stop != nullptr && stop->load()); };
    if (!base::WaitInterruptibly(changed_, &mutex_, absl::InfiniteFuture(), over).ok() || !done()) {
      mutex_.Unlock();
      cancel();
      mutex_.Lock();
      while (!done()) changed_.Wait(&mutex_);
    }
    return *std::move(result_);
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<Table>> Table::Create(TableOptions options) {
  GR_ASSIGN_OR_RETURN(auto core, TableCore::Create(std::move(options)));
  return std::shared_ptr<Table>(new Table(std::make_shared<Impl>(std::move(core))));
}

Table::Table(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Table::~Table() { impl_->Close(); }

Table::WaitId Table::InsertOrAssignAsync(Item item, absl::Time deadline, InsertDone done) {
  return impl_->Insert(std::move(item), deadline, std::move(done));
}

std::vector<Table::WaitId> Table::InsertOrAssignBatchAsync(std::vector<Insertion> batch,
                                                           absl::Time deadline) {
  return impl_->InsertBatch(std::move(batch), deadline);
}

int64_t Table::InsertAtOnce(absl::Span<Item> items, absl::Status* status) {
  return impl_->InsertAtOnce(items, status);
}

absl::Status Table::InsertOrAssign(Item item, absl::Time deadline) {
  const auto pending = std::make_shared<Pending<absl::Status>>();
  const WaitId id = InsertOrAssignAsync(std::move(item), deadline, [pending](absl::Status status) {
    pending->Set(std::move(status));
  });
  return pending->Wait([&] { Cancel(id); });
}

Table::WaitId Table::SampleAsync(int64_t max_items, absl::Time deadline, SampleDone done,
                                 std::shared_ptr<base::Philox> random) {
  return impl_->Sample(max_items, deadline, std::move(done), std::move(random));
}

absl::StatusOr<std::vector<SampledItem>> Table::Sample(int64_t max_items, absl::Time deadline) {
  using Result = absl::StatusOr<std::vector<SampledItem>>;
  const auto pending = std::make_shared<Pending<Result>>();
  const WaitId id = SampleAsync(max_items, deadline,
                                [pending](Result samples) { pending->Set(std::move(samples)); });
  return pending->Wait([&] { Cancel(id); });
}

absl::Status Table::GrantDraws(int64_t max_items, absl::Time deadline, OnGrant on_grant,
                               const std::atomic<bool>* stop) {
  const auto pending = std::make_shared<Pending<absl::Status>>();
  const WaitId id = impl_->Sample(
      max_items, deadline,
      [pending](absl::StatusOr<std::vector<SampledItem>> samples) {
        pending->Set(samples.status());
      },
      nullptr, std::move(on_grant));
  return pending->Wait([&] { Cancel(id); }, stop);
}

void Table::CountDrawn(absl::Span<const uint64_t> keys) { impl_->CountDrawn(keys); }
void Table::Attach(std::shared_ptr<Extension> extension) { impl_->Attach(std::move(extension)); }
void Table::Detach(const Extension* extension) { impl_->Detach(extension); }

void Table::Cancel(WaitId id) { impl_->Cancel(id); }

absl::Status Table::MutateItems(absl::Span<const KeyWithPriority> updates,
                                absl::Span<const uint64_t> deletes) {
  return impl_->Mutate(updates, deletes);
}

void Table::Reset() { impl_->Reset(); }
void Table::CountUnused(int64_t n) { impl_->CountUnused(n); }
void Table::Close() { impl_->Close(); }
void Table::Reopen() { impl_->Reopen(); }
bool Table::CanSample(int64_t n) const { return impl_->CanSample(n); }
bool Table::CanInsert(int64_t n) const { return impl_->CanInsert(n); }
const std::string& Table::name() const { return impl_->name(); }
const Placement& Table::placement() const { return impl_->placement(); }
TableInfo Table::info() const { return impl_->Info(); }
int64_t Table::size() const { return impl_->size(); }
TableSnapshot Table::Snapshot() const { return impl_->Snapshot(); }
absl::Status Table::Restore(const TableSnapshot& snapshot) { return impl_->Restore(snapshot); }

absl::Status Table::DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities) {
  if (keys.size() != probabilities.size()) {
    return base::InvalidArgument(keys.size(), " keys came with ", probabilities.size(),
                                 " probabilities.");
  }
  return impl_->DrawKeys(keys, probabilities);
}

absl::Status Table::InsertKeys(absl::Span<const uint64_t> keys,
                               absl::Span<const double> priorities) {
  return impl_->InsertKeys(keys, priorities);
}

}  // namespace gear_reverb::table
