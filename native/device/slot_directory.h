// Where the items of a mirrored table lie, slot by slot, kept in a device's memory; and the items
// themselves, for as long as the device may read them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/device/change_feed.h"
#include "native/device/draw_backend.h"
#include "native/device/item_form.h"
#include "native/device/slot_copies.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::device {

// Of items that a device can gather by itself: all alike in number, dtype, shape and, but with
// padding, length of their columns, none of which is text or lies in more than
// ItemForm::kMostPieces pieces, in memory that the device reads. What a tier of the table has
// copied is read there, from the first Apply after that. Otherwise, or if the device has no memory
// for them, calls fail with FAILED_PRECONDITION, and why_not() says why from then on.
//
// On the device: 8 bytes a slot, and 16 for every piece of every column, as many pieces for each as
// the largest needs, rounded up to a power of two. Here: 12 bytes a slot, 20 with padding, and a
// reference to every trajectory that was there at the last Apply, or has gone since then and is not
// let go of yet. So a table's items outlive their removal until the next Apply, and what its stream
// had before.
//
// Thread-compatible. All calls use one stream, or such as the caller has made to wait for each
// other.
class SlotDirectory {
 public:
  struct Options {
    bool in_place = false;             // With room for more pieces than the first items have.
    std::shared_ptr<DeviceTier> tier;  // Of the table, if there is one.
    std::optional<Padding> padding = std::nullopt;
  };
  SlotDirectory(std::shared_ptr<DrawBackend> backend, Options options);
  // Waits for the device.
  ~SlotDirectory();
  SlotDirectory(const SlotDirectory&) = delete;
  SlotDirectory& operator=(const SlotDirectory&) = delete;

  // Takes over the changes, which leaves null trajectories. The states that it returns are those of
  // the changes, in memory that copies to the device do not wait for, unless they are very many.
  // After an error the next changes must begin with a reset.
  absl::StatusOr<absl::Span<const SlotState>> Apply(TableChanges& changes, Stream stream);
  // After Apply and the copies of its states: what is no longer needed is let go of when the stream
  // has come past this.
  absl::Status Finish(Stream stream);
  // Room for slots below `count`.
  absl::Status Reserve(size_t count, Stream stream);
  // Lets go of what the device has done with, as Apply does too.
  absl::Status Reap();

  // Empty until the first item came.
  const std::vector<ItemColumn>& columns() const { return form_.columns; }
  bool padded() const { return padding_.has_value(); }
  // Whether within each item all columns with a step axis have been equally long.
  bool lengths_agree() const { return form_.lengths_agree; }
  // The mean bytes of an item's columns, padding not counted.
  uint64_t mean_item_bytes() const;
  const DirectoryView& view() const { return view_; }
  // Changes with the columns, and when the view's memory or pieces do.
  uint64_t version() const { return version_; }
  const std::string& why_not() const { return why_not_; }
  DrawBackend& backend() const { return *backend_; }
  // Whether most of what the entries point to is in the device's own memory.
  bool mostly_there() const { return copies_.has_value() && copies_->most(); }

 private:
  using Trajectories = std::vector<storage::TrajectoryPtr>;
  // What is kept until the stream has come past.
  struct UnderWay {
    std::unique_ptr<Mark> mark;
    std::vector<std::shared_ptr<std::byte>> uploads;
    Trajectories gone;
    std::vector<DeviceCopyPtr> copies;
  };

  using Priority = std::pair<uint32_t, double>;  // With its slot.

  absl::Status Refuse(std::string why);
  // Of the slot's item, if it has one.
  void Let(uint32_t slot);
  // Brings held_, fresh_ and priorities_ up to date.
  absl::Status Sort(TableChanges& changes);
  // Of all fresh items: whether they are as the others are, and whether their pieces have room.
  absl::Status Check(Stream stream);
  absl::Status SetPieces(uint32_t per_column, Stream stream);
  // Room for `to` slots of `of_slot` entries, with those of the first `from`.
  template <typename T>
  absl::Status Grow(T** entries, size_t from, size_t to, size_t of_slot, Stream stream);
  absl::Status Write(Stream stream);
  absl::Status WriteSome(absl::Span<const uint32_t> slots, absl::Span<const Priority> priorities,
                         Stream stream);
  absl::Status FillEntry(uint32_t slot, RowPiece* pieces);
  absl::StatusOr<std::byte*> Stage(size_t bytes);

  const std::shared_ptr<DrawBackend> backend_;
  const bool in_place_;
  const std::optional<Padding> padding_;
  std::optional<SlotCopies> copies_;
  ItemForm form_;  // Of the held items.
  DirectoryView view_;
  uint64_t version_ = 0;
  std::string why_not_;
  size_t capacity_ = 0;         // Slots of the view.
  std::byte* batch_ = nullptr;  // On the device, for changes.
  size_t batch_bytes_ = 0;

  Trajectories held_;  // By slot.
  size_t num_held_ = 0;
  std::vector<uint64_t> bytes_;  // By slot, with padding: of the item, as its entry has it.
  uint64_t held_bytes_ = 0;      // The sum.
  std::vector<uint32_t> seen_;   // By slot: the last Apply that changed it.
  uint32_t applied_ = 0;         // The number of this Apply.
  // Of one Apply.
  std::vector<uint32_t> fresh_;  // Slots whose items are new, or have come to the device.
  std::vector<Priority> priorities_;
  UnderWay now_;  // Until Finish.

  std::deque<UnderWay> under_way_;  // Oldest first.
};

}  // namespace gear_reverb::device
