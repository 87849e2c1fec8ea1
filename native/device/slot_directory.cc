#include "native/device/slot_directory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "native/base/log.h"
#include "native/base/status.h"

namespace gear_reverb::device {
namespace {

constexpr size_t kFewSlots = 1024;
constexpr size_t kMostEntries = size_t{1} << 16;  // Of one upload.
// More is not staged at once: a table that is large already is waited for when it is first copied.
constexpr size_t kMostStagedBytes = size_t{64} << 20;

}  // namespace

SlotDirectory::SlotDirectory(std::shared_ptr<DrawBackend> backend, Options options)
    : backend_(std::move(backend)), in_place_(options.in_place), padding_(options.padding) {
  if (options.tier != nullptr) copies_.emplace(std::move(options.tier));
}

SlotDirectory::~SlotDirectory() {
  base::WarnIfError(backend_->Synchronize());
  SelectBackend& memory = *backend_->select();
  for (void* const each : {static_cast<void*>(view_.pieces), static_cast<void*>(view_.priorities),
                           static_cast<void*>(batch_)}) {
    if (each != nullptr) memory.Free(each);
  }
  storage::Trajectory::ReleaseAll(absl::MakeSpan(held_));
}

absl::Status SlotDirectory::Refuse(std::string why) {
  why_not_ = std::move(why);
  return absl::FailedPreconditionError(why_not_);
}

void SlotDirectory::Let(uint32_t slot) {
  if (held_[slot] == nullptr) return;
  if (copies_.has_value()) copies_->Forget(slot, *held_[slot], &now_.copies);
  now_.gone.push_back(std::move(held_[slot]));
  --num_held_;
  if (padded()) held_bytes_ -= std::exchange(bytes_[slot], 0);
}

uint64_t SlotDirectory::mean_item_bytes() const {
  if (padded()) return num_held_ == 0 ? 0 : held_bytes_ / num_held_;
  uint64_t bytes = 0;
  for (const ItemColumn& column : columns()) bytes += column.bytes();
  return bytes;
}

absl::Status SlotDirectory::Reap() {
  for (; !under_way_.empty(); under_way_.pop_front()) {
    GR_ASSIGN_OR_RETURN(const bool done, under_way_.front().mark->done());
    if (!done) break;
    storage::Trajectory::ReleaseAll(absl::MakeSpan(under_way_.front().gone));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const SlotState>> SlotDirectory::Apply(TableChanges& changes,
                                                                 Stream stream) {
  GR_RETURN_IF_ERROR(Reap());
  GR_RETURN_IF_ERROR(Sort(changes));
  GR_RETURN_IF_ERROR(Reserve(held_.size(), stream));
  GR_RETURN_IF_ERROR(Check(stream));
  GR_RETURN_IF_ERROR(Write(stream));
  const size_t bytes = changes.states.size() * sizeof(SlotState);
  if (bytes == 0 || bytes > kMostStagedBytes) return absl::MakeConstSpan(changes.states);
  GR_ASSIGN_OR_RETURN(std::byte* const states, Stage(bytes));
  std::memcpy(states, changes.states.data(), bytes);
  return absl::MakeConstSpan(reinterpret_cast<const SlotState*>(states), changes.states.size());
}

absl::Status SlotDirectory::Finish(Stream stream) {
  if (now_.uploads.empty() && now_.gone.empty() && now_.copies.empty()) return absl::OkStatus();
  GR_ASSIGN_OR_RETURN(now_.mark, backend_->NewMark(stream));
  under_way_.push_back(std::exchange(now_, {}));
  return absl::OkStatus();
}

// The last state of a slot alone counts, so they are read from the back.
absl::Status SlotDirectory::Sort(TableChanges& changes) {
  fresh_.clear();
  priorities_.clear();
  ++applied_;
  if (changes.reset) {
    for (uint32_t slot = 0; slot < held_.size(); ++slot) Let(slot);
  }
  for (auto state = changes.states.rbegin(); state != changes.states.rend(); ++state) {
    const uint32_t slot = state->slot;
    if (slot >= held_.size()) {
      held_.resize(slot + size_t{1});
      seen_.resize(slot + size_t{1});
      if (padded()) bytes_.resize(slot + size_t{1});
    }
    if (std::exchange(seen_[slot], applied_) == applied_) continue;
    if (state->held == 0) {
      Let(slot);
      continue;
    }
    priorities_.emplace_back(slot, state->priority);
    storage::TrajectoryPtr trajectory;
    if (slot < changes.trajectories.size()) trajectory = std::move(changes.trajectories[slot]);
    if (trajectory == nullptr) trajectory = held_[slot];  // Only the priority is new.
    if (trajectory == nullptr) return Refuse(absl::StrCat("item ", state->key, " has no data"));
    if (trajectory == held_[slot]) continue;
    Let(slot);
    held_[slot] = std::move(trajectory);
    ++num_held_;
    fresh_.push_back(slot);
  }
  if (copies_.has_value()) {
    for (const uint32_t slot : copies_->TakeArrived()) fresh_.push_back(slot);
  }
  return absl::OkStatus();
}

absl::Status SlotDirectory::Check(Stream stream) {
  const bool first = form_.columns.empty();
  ItemForm form = form_;
  // If all others are gone, so is what they had in common, but for padding, which stays.
  if (!fresh_.empty() && num_held_ == fresh_.size() &&
      (!padded() || !form.IsLike(*held_[fresh_[0]]))) {
    form = ItemForm(*held_[fresh_[0]], padding_);
  }
  for (const uint32_t slot : fresh_) {
    const absl::Status added = form.Add(*held_[slot], padding_);
    if (!added.ok()) return Refuse(std::string(added.message()));
  }
  if (form.columns != form_.columns || form.lengths_agree != form_.lengths_agree) ++version_;
  form_ = std::move(form);
  const uint32_t pieces = first && in_place_ ? form_.RoomInPlace(padding_) : form_.most_pieces;
  return SetPieces(std::max(std::bit_ceil(pieces), view_.pieces_per_column), stream);
}

// Entries of other sizes are made anew, for all items.
absl::Status SlotDirectory::SetPieces(uint32_t per_column, Stream stream) {
  const auto columns =
      static_cast<uint32_t>(std::count_if(form_.columns.begin(), form_.columns.end(),
                                          [](const ItemColumn& each) { return each.bytes() > 0; }));
  if (per_column == view_.pieces_per_column && per_column * columns == view_.pieces_per_slot) {
    return absl::OkStatus();
  }
  if (view_.pieces != nullptr) backend_->select()->Free(std::exchange(view_.pieces, nullptr));
  view_.pieces_per_column = per_column;
  view_.pieces_per_slot = per_column * columns;
  ++version_;
  fresh_.clear();
  for (uint32_t slot = 0; slot < held_.size(); ++slot) {
    if (held_[slot] != nullptr) fresh_.push_back(slot);
  }
  return Grow(&view_.pieces, 0, capacity_, view_.pieces_per_slot, stream);
}

template <typename T>
absl::Status SlotDirectory::Grow(T** entries, size_t from, size_t to, size_t of_slot,
                                 Stream stream) {
  if (to * of_slot == 0) return absl::OkStatus();
  SelectBackend& memory = *backend_->select();
  absl::StatusOr<void*> allocated = memory.Allocate(to * of_slot * sizeof(T));
  if (absl::IsResourceExhausted(allocated.status())) {
    return Refuse(absl::StrCat("the device has no memory for a directory of ", to, " items"));
  }
  GR_ASSIGN_OR_RETURN(void* const grown, std::move(allocated));
  absl::Status status;
  if (*entries != nullptr) {
    status = memory.Copy(grown, *entries, from * of_slot * sizeof(T), stream);
    memory.Free(*entries);  // Waits.
  }
  *entries = static_cast<T*>(grown);
  return status;
}

absl::Status SlotDirectory::Reserve(size_t count, Stream stream) {
  if (count <= capacity_) return absl::OkStatus();
  const size_t slots = std::max({count, 2 * capacity_, kFewSlots});
  ++version_;
  GR_RETURN_IF_ERROR(Grow(&view_.pieces, capacity_, slots, view_.pieces_per_slot, stream));
  GR_RETURN_IF_ERROR(Grow(&view_.priorities, capacity_, slots, 1, stream));
  capacity_ = slots;
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> SlotDirectory::Stage(size_t bytes) {
  GR_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> staged, backend_->AllocateHost(bytes));
  now_.uploads.push_back(std::move(staged));
  return now_.uploads.back().get();
}

absl::Status SlotDirectory::Write(Stream stream) {
  absl::Span<const uint32_t> slots = fresh_;
  absl::Span<const Priority> priorities = priorities_;
  const size_t most_staged = std::max<size_t>(
      kMostStagedBytes / (kMostEntries * (view_.pieces_per_slot + 1) * sizeof(RowPiece)), 1);
  while (!slots.empty() || !priorities.empty()) {
    const auto some = slots.first(std::min(slots.size(), kMostEntries));
    const auto others = priorities.first(std::min(priorities.size(), kMostEntries));
    GR_RETURN_IF_ERROR(WriteSome(some, others, stream));
    slots.remove_prefix(some.size());
    priorities.remove_prefix(others.size());
    if (now_.uploads.size() >= most_staged && !slots.empty()) {
      GR_RETURN_IF_ERROR(backend_->select()->Synchronize(stream));
      now_.uploads.clear();
    }
  }
  return absl::OkStatus();
}

// In one upload: pieces, priorities, the slots of both.
absl::Status SlotDirectory::WriteSome(absl::Span<const uint32_t> slots,
                                      absl::Span<const Priority> priorities, Stream stream) {
  const size_t pieces_bytes = slots.size() * view_.pieces_per_slot * sizeof(RowPiece);
  const size_t priorities_bytes = priorities.size() * sizeof(double);
  const size_t bytes =
      pieces_bytes + priorities_bytes + (slots.size() + priorities.size()) * sizeof(uint32_t);
  if (bytes > batch_bytes_) {
    SelectBackend& memory = *backend_->select();
    if (batch_ != nullptr) memory.Free(std::exchange(batch_, nullptr));
    batch_bytes_ = 0;
    GR_ASSIGN_OR_RETURN(void* const batch, memory.Allocate(std::bit_ceil(bytes)));
    batch_ = static_cast<std::byte*>(batch);
    batch_bytes_ = std::bit_ceil(bytes);
  }
  GR_ASSIGN_OR_RETURN(std::byte* const staged, Stage(bytes));
  auto* const pieces = reinterpret_cast<RowPiece*>(staged);
  auto* const values = reinterpret_cast<double*>(staged + pieces_bytes);
  auto* const numbers = reinterpret_cast<uint32_t*>(staged + pieces_bytes + priorities_bytes);
  for (size_t i = 0; i < slots.size(); ++i) {
    GR_RETURN_IF_ERROR(FillEntry(slots[i], pieces + i * view_.pieces_per_slot));
    numbers[i] = slots[i];
  }
  for (size_t i = 0; i < priorities.size(); ++i) {
    values[i] = priorities[i].second;
    numbers[slots.size() + i] = priorities[i].first;
  }
  GR_RETURN_IF_ERROR(backend_->select()->Copy(batch_, staged, bytes, stream));

  EntryChanges changes;
  changes.pieces = reinterpret_cast<const RowPiece*>(batch_);
  changes.priorities = reinterpret_cast<const double*>(batch_ + pieces_bytes);
  changes.slots = reinterpret_cast<const uint32_t*>(batch_ + pieces_bytes + priorities_bytes);
  changes.priority_slots = changes.slots + slots.size();
  changes.count = static_cast<uint32_t>(slots.size());
  changes.priority_count = static_cast<uint32_t>(priorities.size());
  return backend_->WriteEntries(view_, changes, stream);
}

absl::Status SlotDirectory::FillEntry(uint32_t slot, RowPiece* pieces) {
  const storage::Trajectory& item = *held_[slot];
  if (copies_.has_value()) copies_->Forget(slot, item, &now_.copies);
  uint64_t item_bytes = 0;
  for (size_t i = 0; i < columns().size(); ++i) {
    const uint64_t step_bytes = columns()[i].step_bytes;
    if (step_bytes == 0) continue;
    const storage::TrajectoryColumn column = item.columns[i];
    uint64_t end = 0;
    RowPiece* const last = pieces + view_.pieces_per_column;
    for (const storage::ChunkSlice& slice : column.slices) {
      const uint64_t bytes = slice.length * step_bytes;
      const std::byte* const data = slice.source().data.data() + slice.offset * step_bytes;
      end += bytes;
      const std::byte* found =
          copies_.has_value() ? copies_->Find(slot, slice.source(), data) : nullptr;
      if (found == nullptr) found = backend_->AddressOf(data, bytes);
      *pieces = {found, end};
      if (pieces->data == nullptr) {
        return Refuse(absl::StrCat("column ", i,
                                   " of an item is in memory that the device cannot "
                                   "read"));
      }
      ++pieces;
    }
    for (; pieces < last; ++pieces) *pieces = {nullptr, 0};
    item_bytes += end;
  }
  if (padded()) held_bytes_ += item_bytes - std::exchange(bytes_[slot], item_bytes);
  return absl::OkStatus();
}

}  // namespace gear_reverb::device
