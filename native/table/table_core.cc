#include "native/table/table_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/time/clock.h"
#include "native/base/prefetch.h"
#include "native/base/status.h"

namespace gear_reverb::table {

absl::Status TableCore::CheckPriority(uint64_t key, double priority) const {
  const char* const problem = std::isnan(priority)               ? "Priority must not be NaN."
                              : !std::isfinite(priority)         ? "Priority must be finite."
                              : priority < 0 && !takes_negative_ ? "Priority must not be negative."
                                                                 : nullptr;
  if (problem == nullptr) return absl::OkStatus();
  return base::InvalidArgument(problem, " Item ", key, " was given ", priority, ".");
}

absl::StatusOr<std::unique_ptr<TableCore>> TableCore::Create(TableOptions options) {
  if (options.name.empty()) return base::InvalidArgument("name must be nonempty");
  if (options.max_size <= 0) {
    return base::InvalidArgument("max_size (", options.max_size, ") must be a positive integer");
  }
  for (const auto& extension : options.extensions) {
    if (extension == nullptr) return base::InvalidArgument("extensions must not hold null");
  }
  GR_ASSIGN_OR_RETURN(auto sampler, selectors::MakeSelector(options.sampler));
  GR_ASSIGN_OR_RETURN(auto remover, selectors::MakeSelector(options.remover));
  GR_ASSIGN_OR_RETURN(auto limiter, rate_limiter::RateLimiter::Create(options.rate_limiter));
  if (!options.has_seed) options.seed = base::RandomUint64();
  for (const auto& extension : options.extensions) extension->OnAttach(options.name);
  return std::unique_ptr<TableCore>(new TableCore(std::move(options), std::move(sampler),
                                                  std::move(remover), std::move(limiter)));
}

TableCore::TableCore(TableOptions options, std::unique_ptr<selectors::Selector> sampler,
                     std::unique_ptr<selectors::Selector> remover,
                     rate_limiter::RateLimiter limiter)
    : options_(std::move(options)),
      takes_negative_(selectors::TakesNegative(options_.sampler) &&
                      selectors::TakesNegative(options_.remover)),
      sampler_(std::move(sampler)),
      remover_(std::move(remover)),
      limiter_(std::move(limiter)),
      random_(options_.seed) {}

void TableCore::Notify(void (Extension::*event)(const Item&), Slot slot) {
  if (options_.extensions.empty()) return;
  Item item = items_.Get(slot);
  item.slot = slot;
  for (const auto& extension : options_.extensions) (extension.get()->*event)(item);
}

absl::StatusOr<Slot> TableCore::Add(Item&& item, Changes* changes) {
  const double priority = item.priority;
  const Slot slot = items_.Insert(std::move(item));
  if (slot == ItemStore::kNone) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Table ", options_.name, " has no slot, or memory, left for another item."));
  }
  absl::Status status = sampler_->Insert({&slot, 1}, {&priority, 1});
  if (status.ok()) {
    status = remover_->Insert({&slot, 1}, {&priority, 1});
    if (!status.ok()) sampler_->Erase({&slot, 1}).IgnoreError();
  }
  if (!status.ok()) {
    item.trajectory = items_.Erase(slot);
    return status;
  }
  const storage::TrajectoryPtr& trajectory = items_.record(slot).trajectory;
  episodes_.Insert(trajectory.get());
  if (!changes->bytes_of_added_are_counted) changes->added.push_back(trajectory);
  Notify(&Extension::OnInsert, slot);
  return slot;
}

absl::Status TableCore::Insert(Item&& item, absl::Time now, Changes* changes) {
  if (!options_.extensions.empty()) item.Settle();
  item.times_sampled = 0;
  item.inserted_at = now;
  GR_RETURN_IF_ERROR(Add(std::move(item), changes).status());
  limiter_.CountInsert(1);
  while (items_.size() > options_.max_size) {
    selectors::Draw draw;
    GR_RETURN_IF_ERROR(remover_->Sample(random_, {&draw, 1}));
    GR_RETURN_IF_ERROR(Delete({&draw.slot, 1}, changes));
  }
  return absl::OkStatus();
}

absl::Status TableCore::Assign(Item&& item, Changes* changes) {
  if (!options_.extensions.empty()) item.Settle();
  const Slot slot = items_.Find(item.key);
  GR_RETURN_IF_ERROR(sampler_->Update({&slot, 1}, {&item.priority, 1}));
  GR_RETURN_IF_ERROR(remover_->Update({&slot, 1}, {&item.priority, 1}));
  ItemStore::Record& record = items_.record(slot);
  record.priority = item.priority;
  if (item.trajectory != nullptr &&
      (item.trajectory != record.trajectory || item.row != record.row)) {
    episodes_.Insert(item.trajectory.get());
    episodes_.Erase(record.trajectory.get());
    changes->added.push_back(item.trajectory);
    changes->removed.push_back(std::exchange(record.trajectory, std::move(item.trajectory)));
    record.row = item.row;
  }
  Notify(&Extension::OnUpdate, slot);
  return absl::OkStatus();
}

void TableCore::CountDraw(Slot slot) {
  ItemStore::Record& record = items_.record(slot);
  if (record.times_sampled == 0) ++num_unique_samples_;
  if (record.times_sampled < INT32_MAX) ++record.times_sampled;
  Notify(&Extension::OnSample, slot);
}

void TableCore::Append(const selectors::Draw& draw, bool rate_limited,
                       std::vector<SampledItem>* samples) {
  CountDraw(draw.slot);
  samples->push_back({items_.Get(draw.slot), draw.probability, items_.size(), rate_limited});
}

absl::Status TableCore::Sample(int64_t max_items, bool rate_limited, base::Philox* random,
                               std::vector<SampledItem>* samples, Changes* changes) {
  if (random == nullptr) random = &random_;
  max_items = std::min(max_items, kMaxDraws);
  if (options_.max_times_sampled <= 0) {
    // Drawing changes nothing that a draw depends on: all at once.
    draws_.resize(limiter_.SampleAllowance(max_items));
    GR_RETURN_IF_ERROR(sampler_->Sample(*random, absl::MakeSpan(draws_)));
    samples->reserve(samples->size() + draws_.size());
    constexpr size_t kFar = 16, kNear = 8;
    for (size_t i = 0; i < draws_.size(); ++i) {
      // Random slots of a large table are cache misses: have several under way.
      if (i + kFar < draws_.size()) items_.Prefetch(draws_[i + kFar].slot);
      if (i + kNear < draws_.size()) {
        base::Prefetch(items_.record(draws_[i + kNear].slot).trajectory.get());
      }
      Append(draws_[i], rate_limited, samples);
    }
    limiter_.CountSample(draws_.size());
    return absl::OkStatus();
  }
  for (int64_t i = 0; i < max_items && CanSample(1); ++i) {
    selectors::Draw draw;
    GR_RETURN_IF_ERROR(sampler_->Sample(*random, {&draw, 1}));
    Append(draw, rate_limited, samples);
    limiter_.CountSample(1);
    if (samples->back().item.times_sampled >= options_.max_times_sampled) {
      GR_RETURN_IF_ERROR(Delete({&draw.slot, 1}, changes));
    }
  }
  return absl::OkStatus();
}

void TableCore::Forget(absl::Span<const Slot> slots, Changes* changes) {
  for (const Slot slot : slots) {
    Notify(&Extension::OnDelete, slot);
    changes->removed.push_back(items_.Erase(slot));
    episodes_.Erase(changes->removed.back().get());
  }
  limiter_.CountDelete(slots.size());
}

absl::Status TableCore::Delete(absl::Span<const Slot> slots, Changes* changes) {
  GR_RETURN_IF_ERROR(sampler_->Erase(slots));
  GR_RETURN_IF_ERROR(remover_->Erase(slots));
  Forget(slots, changes);
  return absl::OkStatus();
}

absl::Status TableCore::Mutate(absl::Span<const KeyWithPriority> updates,
                               absl::Span<const uint64_t> deletes, Changes* changes) {
  slots_.clear();
  priorities_.clear();
  for (const KeyWithPriority& update : updates) {
    const Slot slot = items_.Find(update.key);
    // Learners give the priorities of many items of which some are gone: those are passed over.
    if (slot == ItemStore::kNone && !std::isnan(update.priority)) continue;
    GR_RETURN_IF_ERROR(CheckPriority(update.key, update.priority));
    slots_.push_back(slot);
    priorities_.push_back(update.priority);
  }
  GR_RETURN_IF_ERROR(sampler_->Update(slots_, priorities_));
  GR_RETURN_IF_ERROR(remover_->Update(slots_, priorities_));
  for (size_t i = 0; i < slots_.size(); ++i) {
    items_.record(slots_[i]).priority = priorities_[i];
    Notify(&Extension::OnUpdate, slots_[i]);
  }
  slots_.clear();
  for (const uint64_t key : deletes) {
    if (const Slot slot = items_.Find(key); slot != ItemStore::kNone) slots_.push_back(slot);
  }
  std::sort(slots_.begin(), slots_.end());
  slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
  return Delete(slots_, changes);
}

void TableCore::Reset(Changes* changes) {
  for (const auto& extension : options_.extensions) extension->OnReset();
  sampler_->Clear();
  remover_->Clear();
  limiter_.Reset();
  episodes_.Clear();
  num_unique_samples_ = 0;
  num_unused_samples_ = 0;
  changes->cleared.push_back(std::exchange(items_, ItemStore()));
}

absl::Status TableCore::DrawKeys(absl::Span<uint64_t> keys, absl::Span<double> probabilities) {
  draws_.resize(keys.size());
  GR_RETURN_IF_ERROR(sampler_->Sample(random_, absl::MakeSpan(draws_)));
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = items_.key(draws_[i].slot);
    probabilities[i] = draws_[i].probability;
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::table
