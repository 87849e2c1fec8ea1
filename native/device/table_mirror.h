// A table's sampler on a device: it holds what the table holds, and draws what the table allows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/device/change_feed.h"
#include "native/device/selection.h"
#include "native/device/slot_directory.h"
#include "native/table/table.h"

namespace gear_reverb::device {

// The table queues its changes in a feed, at the price of a copy of 32 bytes each. A draw asks the
// table's rate limiter first; with the grant, under the table's lock, it takes the changes that are
// queued, and brings the device up to date before it draws. So a draw sees exactly the items that
// the table had when it granted the draw, whoever inserts, updates or deletes meanwhile.
//
// With a directory, what the items refer to is followed as well.
//
// Thread-compatible but for Cancel; the table may be used from any thread meanwhile. Calls must use
// one stream, or streams that the caller has made to wait for each other. What is drawn may be gone
// from the table by the time that the caller sees it; who needs its data holds on to it.
//
// Among equal priorities of a heap, items that were there before the mirror count as touched in
// order of insertion, as after a checkpoint.
class TableMirror {
 public:
  // Follows `table` from here on, drawing as its sampler does with the random numbers of `seed`.
  // FAILED_PRECONDITION for a table with max_times_sampled.
  static absl::StatusOr<std::unique_ptr<TableMirror>> Create(
      std::shared_ptr<table::Table> table, std::shared_ptr<SelectBackend> backend, uint64_t seed,
      std::unique_ptr<SlotDirectory> directory = nullptr);
  ~TableMirror();
  TableMirror(const TableMirror&) = delete;
  TableMirror& operator=(const TableMirror&) = delete;

  // Waits until the table allows a draw, then draws as many as it allows, at most `max_items`, and
  // returns how many. `output` has room for `max_items`. They count as samples of the table; report
  // their keys to Table::CountDrawn for them to count as samples of their items. The errors of
  // Table::GrantDraws and Selection::Draw. If the device fails after the grant, the samples count
  // as unused, and the next call begins with all of the table's items anew.
  absl::StatusOr<uint32_t> Draw(uint32_t max_items, double beta, absl::Time deadline,
                                const DrawOutput& output, Stream stream);
  // As Draw, the first items of the table's order rather than draws with replacement:
  // Selection::Top with the table's grant for exactly k samples (FAILED_PRECONDITION if the
  // limiter allows some, but not so many; those it allowed then count as unused).
  absl::Status Top(uint32_t k, absl::Time deadline, const DrawOutput& output, Stream stream);

  // As Draw, but leaves the draw itself to selection().
  absl::StatusOr<uint32_t> Grant(uint32_t max_items, absl::Time deadline, Stream stream);

  // Brings the device up to date without a draw.
  absl::Status Follow(Stream stream);

  // Ends a waiting call, and all later ones that would wait, with CANCELLED. Thread-safe.
  void Cancel() { cancelled_ = true; }

  const std::shared_ptr<table::Table>& table() const { return table_; }
  const Selection& selection() const { return *selection_; }
  Selection& selection() { return *selection_; }
  SlotDirectory* directory() const { return directory_.get(); }

 private:
  TableMirror(std::shared_ptr<table::Table> table, std::unique_ptr<Selection> selection,
              std::unique_ptr<SlotDirectory> directory);

  void Attach();
  void Take();
  // Applies what was taken. If that fails, the next changes are all of the table's items.
  absl::Status Apply(Stream stream);
  // Runs `draw` with the number that the table grants, 1 to `max_items`.
  template <typename Call>
  absl::StatusOr<uint32_t> WithGrant(uint32_t max_items, absl::Time deadline, Stream stream,
                                     Call draw);

  const std::shared_ptr<table::Table> table_;
  const std::unique_ptr<Selection> selection_;
  const std::unique_ptr<SlotDirectory> directory_;  // Null: none.
  std::shared_ptr<ChangeFeed> feed_;
  TableChanges changes_;  // Taken from the feed.
  bool failed_ = false;   // All items go before changes_, whatever it says.
  std::atomic<bool> cancelled_{false};
};

}  // namespace gear_reverb::device
