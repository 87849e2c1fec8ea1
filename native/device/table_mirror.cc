#include "native/device/table_mirror.h"

#include <utility>

#include "native/base/status.h"

namespace gear_reverb::device {

absl::StatusOr<std::unique_ptr<TableMirror>> TableMirror::Create(
    std::shared_ptr<table::Table> table, std::shared_ptr<SelectBackend> backend, uint64_t seed,
    std::unique_ptr<SlotDirectory> directory) {
  const table::TableInfo info = table->info();
  if (info.max_times_sampled > 0) {
    return base::FailedPrecondition("Table ", info.name, " has max_times_sampled (",
                                    info.max_times_sampled, "), so its own sampler must draw.");
  }
  GR_ASSIGN_OR_RETURN(auto selection, Selection::Create(info.sampler, std::move(backend)));
  GR_RETURN_IF_ERROR(selection->Seed(seed, 0, nullptr));
  GR_RETURN_IF_ERROR(selection->backend()->Synchronize(nullptr));
  return std::unique_ptr<TableMirror>(
      new TableMirror(std::move(table), std::move(selection), std::move(directory)));
}

TableMirror::TableMirror(std::shared_ptr<table::Table> table, std::unique_ptr<Selection> selection,
                         std::unique_ptr<SlotDirectory> directory)
    : table_(std::move(table)), selection_(std::move(selection)), directory_(std::move(directory)) {
  Attach();
}

TableMirror::~TableMirror() { table_->Detach(feed_.get()); }

void TableMirror::Attach() {
  if (feed_ != nullptr) table_->Detach(feed_.get());
  const Strategy strategy = selection_->view().strategy;
  feed_ = std::make_shared<ChangeFeed>(strategy == Strategy::kFifo || strategy == Strategy::kLifo,
                                       directory_ != nullptr);
  table_->Attach(feed_);
}

void TableMirror::Take() { feed_->Take(&changes_); }

absl::Status TableMirror::Apply(Stream stream) {
  changes_.reset |= failed_;
  const auto apply = [&]() -> absl::Status {
    absl::Span<const SlotState> states = changes_.states;
    if (directory_ != nullptr) {
      GR_ASSIGN_OR_RETURN(states, directory_->Apply(changes_, stream));
    }
    if (changes_.reset) GR_RETURN_IF_ERROR(selection_->Clear(stream));
    GR_RETURN_IF_ERROR(selection_->Apply(states, stream));
    return directory_ == nullptr ? absl::OkStatus() : directory_->Finish(stream);
  };
  absl::Status status = apply();
  failed_ = !status.ok();
  if (failed_) {
    changes_ = {};
    Attach();
  }
  return status;
}

template <typename Call>
absl::StatusOr<uint32_t> TableMirror::WithGrant(uint32_t max_items, absl::Time deadline,
                                                Stream stream, Call draw) {
  int64_t granted = 0;
  GR_RETURN_IF_ERROR(table_->GrantDraws(
      max_items, deadline,
      [&](int64_t n) {
        granted = n;
        Take();
      },
      &cancelled_));
  absl::Status status = Apply(stream);
  if (status.ok()) status = draw(static_cast<uint32_t>(granted));
  if (status.ok()) return static_cast<uint32_t>(granted);
  table_->CountUnused(granted);
  return status;
}

absl::StatusOr<uint32_t> TableMirror::Draw(uint32_t max_items, double beta, absl::Time deadline,
                                           const DrawOutput& output, Stream stream) {
  GR_RETURN_IF_ERROR(selection_->CheckDraw(max_items, beta, output));
  return WithGrant(max_items, deadline, stream,
                   [&](uint32_t n) { return selection_->Draw(n, beta, output, stream); });
}

absl::StatusOr<uint32_t> TableMirror::Grant(uint32_t max_items, absl::Time deadline,
                                            Stream stream) {
  return WithGrant(max_items, deadline, stream, [](uint32_t) { return absl::OkStatus(); });
}

absl::Status TableMirror::Top(uint32_t k, absl::Time deadline, const DrawOutput& output,
                              Stream stream) {
  GR_RETURN_IF_ERROR(selection_->CheckTop(k));
  return WithGrant(k, deadline, stream,
                   [&](uint32_t n) -> absl::Status {
                     if (n < k) {
                       return base::FailedPrecondition("The rate limiter allows ", n,
                                                       " samples now, not ", k, ".");
                     }
                     return selection_->Top(k, output, stream);
                   })
      .status();
}

absl::Status TableMirror::Follow(Stream stream) {
  Take();
  return Apply(stream);
}

}  // namespace gear_reverb::device
