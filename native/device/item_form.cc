#include "native/device/item_form.h"

#include <algorithm>

#include "native/base/status.h"

namespace gear_reverb::device {
namespace {

bool IsLikeColumn(const storage::TrajectoryColumn& column, const ItemColumn& other) {
  const storage::ChunkColumn& source = column.slices[0].source();
  return source.dtype() == other.dtype && column.squeeze == other.squeezed &&
         source.shape().subspan(1) == absl::MakeConstSpan(other.step_shape);
}

}  // namespace

ItemForm::ItemForm(const storage::Trajectory& item, const std::optional<Padding>& padding) {
  for (const storage::TrajectoryColumn column : item.columns) {
    const storage::ChunkColumn& source = column.slices[0].source();
    const auto step_shape = source.shape().subspan(1);
    ItemColumn& made = columns.emplace_back();
    made.dtype = source.dtype();
    made.step_shape.assign(step_shape.begin(), step_shape.end());
    made.squeezed = column.squeeze;
    made.steps = column.length();
    if (padding.has_value() && padding->steps > 0 && !made.squeezed) made.steps = padding->steps;
    made.step_bytes = tensor::ByteSize(made.dtype);
    for (const int64_t axis : made.step_shape) made.step_bytes *= axis;
  }
}

bool ItemForm::IsLike(const storage::Trajectory& item) const {
  if (item.columns.size() != columns.size()) return false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!IsLikeColumn(item.columns[i], columns[i])) return false;
  }
  return true;
}

absl::Status ItemForm::Add(const storage::Trajectory& item, const std::optional<Padding>& padding) {
  if (item.columns.size() != columns.size()) {
    const auto [few, many] = std::minmax({columns.size(), item.columns.size()});
    return base::FailedPrecondition("its items have ", few, " or ", many, " columns");
  }
  std::optional<int64_t> first_steps;
  for (size_t i = 0; i < columns.size(); ++i) {
    const storage::TrajectoryColumn column = item.columns[i];
    ItemColumn& known = columns[i];
    const int64_t steps = column.length();
    if (known.dtype == tensor::DType::kString) {
      return base::FailedPrecondition("column ", i, " of its items is text");
    }
    if (!IsLikeColumn(column, known) || (!padding.has_value() && steps != known.steps)) {
      return base::FailedPrecondition("column ", i,
                                      " of its items does not always have the same dtype, shape",
                                      padding.has_value() ? "" : " and number of steps");
    }
    if (column.slices.size() > kMostPieces) {
      return base::FailedPrecondition("column ", i, " of an item lies in ", column.slices.size(),
                                      " pieces, which is more than ", kMostPieces);
    }
    most_pieces = std::max(most_pieces, static_cast<uint32_t>(column.slices.size()));
    longest = std::max(longest, steps);
    if (!padding.has_value() || known.squeezed) continue;
    if (known.step_bytes == 0) {
      return base::FailedPrecondition("column ", i,
                                      " of its items has no bytes that tell its length");
    }
    if (padding->steps > 0 && steps > padding->steps) {
      return base::FailedPrecondition("column ", i, " of an item has ", steps,
                                      " steps, which is more than pad_to (", padding->steps, ")");
    }
    known.steps = std::max(known.steps, steps);
    lengths_agree &= steps == first_steps.value_or(steps);
    first_steps = steps;
  }
  return absl::OkStatus();
}

// Twice as many as there are; of items that may be longer, as many more as they may be longer.
uint32_t ItemForm::RoomInPlace(const std::optional<Padding>& padding) const {
  constexpr uint64_t kLeast = 4;
  uint64_t times = 2;
  if (padding.has_value() && padding->steps > 0) {
    times = std::max<uint64_t>(times, (padding->steps + longest - 1) / longest);
  }
  return static_cast<uint32_t>(std::clamp<uint64_t>(most_pieces * times, kLeast, kMostPieces));
}

}  // namespace gear_reverb::device
