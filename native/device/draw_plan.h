// Batches of one size that a device draws and gathers by itself: where everything lies in an
// output, and the work that writes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/device/batch_plan.h"
#include "native/device/device.h"
#include "native/device/selection.h"
#include "native/device/slot_directory.h"

namespace gear_reverb::device {

// Where a batch's arrays are in its output. The columns are those of a batch of equally long items,
// or of such as are filled up.
struct DrawnArrays {
  std::vector<OutputArray> columns;
  OutputArray keys;                    // uint64[n]
  OutputArray probabilities;           // float64[n]
  OutputArray priorities;              // float64[n]
  std::optional<OutputArray> weights;  // float32[n]
  // As of BatchPlan, of a padded directory: lengths and masks.
  std::vector<OutputSides> sides;
  bool lengths_agree = true;
  uint64_t output_bytes = 0;
  uint64_t column_bytes = 0;  // Masks included.
};

// Thread-compatible; of one directory, as long as that has the same version. Memory on the device:
// 4 bytes for each draw, and 56 and its pieces' 16 each for every row, of which there is one for
// each draw of each column and mask.
class DrawPlan {
 public:
  static DrawnArrays ArraysOf(const SlotDirectory& directory, uint32_t n, const Casts& casts,
                              bool weights);
  // Waits for the stream.
  static absl::StatusOr<std::unique_ptr<DrawPlan>> Create(const SlotDirectory& directory,
                                                          uint32_t n, const Casts& casts,
                                                          bool weights, Stream stream,
                                                          Choice choice = Choice::kDraws);
  ~DrawPlan();
  DrawPlan(const DrawPlan&) = delete;
  DrawPlan& operator=(const DrawPlan&) = delete;

  // Draws, and gathers what was drawn. Nothing but kernels with the same arguments each time, so it
  // may be captured and replayed. Uses memory of the plan: one after another. The errors of
  // Selection::Draw or Top.
  absl::Status Enqueue(Selection& selection, double beta, std::byte* output, Stream stream);

  uint32_t size() const { return size_; }
  Choice choice() const { return choice_; }
  const DrawnArrays& arrays() const { return arrays_; }
  uint64_t version() const { return version_; }  // Of the directory.

 private:
  DrawPlan(const SlotDirectory& directory, uint32_t n, DrawnArrays arrays, Choice choice);
  // Adds the rows of columns and masks, and says what has lengths.
  std::vector<PickedSide> AddRows(const Casts& casts, GatherPlan* rows) const;
  absl::Status Fill(const Casts& casts, Stream stream);

  const SlotDirectory& directory_;
  const uint32_t size_;
  const Choice choice_;
  const uint64_t version_;
  const DrawnArrays arrays_;
  RowList list_{};
  std::byte* memory_ = nullptr;  // On the device: rows, pieces, sides, the tiles' index, slots.
  PickedSide* sides_ = nullptr;  // Null if items are equally long.
  uint32_t* slots_ = nullptr;
  Row* rows_ = nullptr;
  RowPiece* pieces_ = nullptr;
};

}  // namespace gear_reverb::device
