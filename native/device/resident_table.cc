#include "native/device/resident_table.h"

#include <utility>

#include "native/base/log.h"
#include "native/base/status.h"

namespace gear_reverb::device {

absl::StatusOr<std::unique_ptr<ResidentTable>> ResidentTable::Create(
    std::shared_ptr<table::Table> table, std::shared_ptr<DrawBackend> backend,
    const Options& options) {
  const int64_t max_size = table->info().max_size;
  const SlotDirectory::Options of_directory{options.in_place, options.tier, options.padding};
  GR_ASSIGN_OR_RETURN(auto mirror,
                      TableMirror::Create(std::move(table), backend->select(), options.seed,
                                          std::make_unique<SlotDirectory>(backend, of_directory)));
  if (options.in_place) {
    const size_t slots = static_cast<size_t>(max_size) + 1;  // An item comes before one goes.
    GR_RETURN_IF_ERROR(mirror->selection().Reserve(slots, nullptr));
    GR_RETURN_IF_ERROR(mirror->directory()->Reserve(slots, nullptr));
    GR_RETURN_IF_ERROR(backend->Synchronize());
  }
  return std::unique_ptr<ResidentTable>(new ResidentTable(std::move(mirror), std::move(backend)));
}

ResidentTable::~ResidentTable() {
  base::WarnIfError(backend_->Synchronize());
  base::WarnIfError(Report());
  for (const Arriving& lost : arriving_) granted_ += lost.n;  // The device has failed.
  if (granted_ > 0) mirror_->table()->CountUnused(granted_);
}

absl::Status ResidentTable::Prepare(uint32_t n, absl::Time deadline, Stream stream) {
  GR_RETURN_IF_ERROR(Report());
  if (granted_ >= n) {  // A batch that failed on its way.
    GR_RETURN_IF_ERROR(mirror_->Follow(stream));
    if (mirror_->selection().size() > 0) return absl::OkStatus();
    mirror_->table()->CountUnused(std::exchange(granted_, 0));
  }
  while (granted_ < n) {
    GR_ASSIGN_OR_RETURN(const uint32_t more, mirror_->Grant(n - granted_, deadline, stream));
    granted_ += more;
  }
  return absl::OkStatus();
}

absl::Status ResidentTable::Collect(const DrawPlan& plan, const std::byte* output, Stream stream) {
  const size_t bytes = plan.size() * sizeof(uint64_t);
  Arriving arriving;
  arriving.n = plan.size();
  arriving.choice = plan.choice();
  GR_ASSIGN_OR_RETURN(arriving.host, backend_->AllocateHost(bytes + sizeof(DrawState)));
  std::byte* const host = arriving.host.get();
  SelectBackend& memory = *backend_->select();
  GR_RETURN_IF_ERROR(memory.Copy(host, output + plan.arrays().keys.offset, bytes, stream));
  GR_RETURN_IF_ERROR(
      memory.Copy(host + bytes, mirror_->selection().draw_state(), sizeof(DrawState), stream));
  GR_ASSIGN_OR_RETURN(arriving.mark, backend_->NewMark(stream));
  arriving_.push_back(std::move(arriving));
  granted_ = 0;
  return Report();
}

absl::Status ResidentTable::Report() {
  for (; !arriving_.empty(); arriving_.pop_front()) {
    GR_ASSIGN_OR_RETURN(const bool done, arriving_.front().mark->done());
    if (!done) break;
    const Arriving& arrived = arriving_.front();
    const auto* const keys = reinterpret_cast<const uint64_t*>(arrived.host.get());
    const auto* const state = reinterpret_cast<const DrawState*>(keys + arrived.n);
    const bool drew = std::exchange(position_, state->position) != state->position;
    if (drew || arrived.choice == Choice::kTopK) {
      mirror_->table()->CountDrawn({keys, arrived.n});
    } else {
      mirror_->table()->CountUnused(arrived.n);
    }
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::device
