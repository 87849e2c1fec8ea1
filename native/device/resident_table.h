// A table whose batches a device draws and gathers by itself: the host asks the rate limiter, and
// brings the device up to date.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/device/draw_plan.h"
#include "native/device/table_mirror.h"

namespace gear_reverb::device {

// A batch is: Prepare, then DrawPlan::Enqueue (or the replay of what was captured of it), then
// Collect, all on one stream, or on streams that the caller has made to wait for each other. None
// of them waits for the device, but where memory has to grow.
//
// Items that leave the table stay in memory until the device has done with the draws before: see
// SlotDirectory. Thread-compatible but for Cancel.
class ResidentTable {
 public:
  struct Options {
    uint64_t seed = 0;
    // Room for all items that the table may have, and some more pieces than the first ones need, so
    // that addresses stay as they are.
    bool in_place = false;
    // Of the table: what it has copied is gathered there.
    std::shared_ptr<DeviceTier> tier;
    std::optional<Padding> padding = std::nullopt;
  };

  // FAILED_PRECONDITION for a table with max_times_sampled.
  static absl::StatusOr<std::unique_ptr<ResidentTable>> Create(std::shared_ptr<table::Table> table,
                                                               std::shared_ptr<DrawBackend> backend,
                                                               const Options& options);
  // Waits for the device. Draws that were granted and not made count as unused.
  ~ResidentTable();

  // Waits until the table allows `n` draws in all, and puts on the stream what makes the device
  // have the items that the table had when it allowed the last of them. The errors of
  // TableMirror::Draw; what was allowed before one is used by the next call. FAILED_PRECONDITION
  // with why_not(), for good, once the device cannot gather the items by itself.
  absl::Status Prepare(uint32_t n, absl::Time deadline, Stream stream);
  // After a batch was put on the stream, or should have been: the keys that lie in its output are
  // copied to the host, and told to the table once they are there. If nothing was drawn since the
  // last call, the draws count as unused; of first items (kTopK) that cannot be told.
  absl::Status Collect(const DrawPlan& plan, const std::byte* output, Stream stream);
  // Tells the table what has arrived. Prepare does so too.
  absl::Status Report();

  // Ends a waiting Prepare, and later ones that would wait, with CANCELLED. Thread-safe.
  void Cancel() { mirror_->Cancel(); }

  int64_t table_size() const { return static_cast<int64_t>(mirror_->selection().size()); }
  Selection& selection() { return mirror_->selection(); }
  const SlotDirectory& directory() const { return *mirror_->directory(); }
  const std::string& why_not() const { return directory().why_not(); }

 private:
  struct Arriving {
    std::unique_ptr<Mark> mark;
    std::shared_ptr<std::byte> host;  // `n` keys, then a DrawState.
    uint32_t n;
    Choice choice;
  };

  ResidentTable(std::unique_ptr<TableMirror> mirror, std::shared_ptr<DrawBackend> backend)
      : mirror_(std::move(mirror)), backend_(std::move(backend)) {}

  const std::unique_ptr<TableMirror> mirror_;
  const std::shared_ptr<DrawBackend> backend_;
  uint32_t granted_ = 0;  // Draws that are not made yet.
  std::deque<Arriving> arriving_;
  uint64_t position_ = 0;  // Of the draws that were reported.
};

}  // namespace gear_reverb::device
