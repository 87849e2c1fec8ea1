#include "native/batch/join.h"

#include <memory>
#include <string>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::batch {
namespace {

std::string StepText(const DrawnColumn& column) {
  return absl::StrCat(tensor::Name(column.dtype), tensor::ShapeString(column.step_shape));
}

template <typename T>
void AppendValues(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

template <typename T>
std::vector<T> CutValues(std::vector<T>* values, size_t n) {
  std::vector<T> rest(values->begin() + n, values->end());
  values->resize(n);
  return rest;
}

// The lease stays with the caller.
void Append(const DrawnBatch& from, DrawnBatch* to) {
  AppendValues(from.keys, &to->keys);
  AppendValues(from.probabilities, &to->probabilities);
  AppendValues(from.priorities, &to->priorities);
  AppendValues(from.table_sizes, &to->table_sizes);
  AppendValues(from.times_sampled, &to->times_sampled);
  AppendValues(from.rate_limited, &to->rate_limited);
  for (size_t i = 0; i < to->columns.size(); ++i) {
    DrawnColumn& column = to->columns[i];
    const auto pieces = static_cast<uint32_t>(column.pieces.size());
    for (const uint32_t end : from.columns[i].piece_ends) column.piece_ends.push_back(pieces + end);
    AppendValues(from.columns[i].lengths, &column.lengths);
    AppendValues(from.columns[i].pieces, &column.pieces);
  }
}

}  // namespace

absl::Status CheckAlike(const DrawnBatch& first, const DrawnBatch& next) {
  constexpr char kNoBatch[] = ": they cannot be one batch.";
  const uint64_t first_key = first.keys[0], key = next.keys[0];
  if (first.columns.size() != next.columns.size()) {
    return base::InvalidArgument("Item ", key, " has ", next.columns.size(), " columns, but item ",
                                 first_key, " has ", first.columns.size(), kNoBatch);
  }
  for (size_t i = 0; i < first.columns.size(); ++i) {
    const DrawnColumn &x = first.columns[i], &y = next.columns[i];
    if (x.squeezed != y.squeezed) {
      return base::InvalidArgument("Column ", i, " of item ", key, " is ", y.squeezed ? "" : "not ",
                                   "squeezed, but that of item ", first_key, " is ",
                                   x.squeezed ? "" : "not ", "squeezed", kNoBatch);
    }
    if (x.dtype != y.dtype || x.step_shape != y.step_shape) {
      return base::InvalidArgument("Column ", i, " of item ", key, " has steps of ", StepText(y),
                                   ", but that of item ", first_key, " of ", StepText(x), kNoBatch);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<DrawnBatch> Join(std::vector<DrawnBatch> parts) {
  DrawnBatch joined = std::move(parts[0]);
  if (parts.size() == 1) return joined;
  auto leases = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  leases->push_back(std::move(joined.lease));
  for (DrawnBatch& part : absl::MakeSpan(parts).subspan(1)) {
    GR_RETURN_IF_ERROR(CheckAlike(joined, part));
    Append(part, &joined);
    leases->push_back(std::move(part.lease));
  }
  joined.lease = std::move(leases);
  return joined;
}

DrawnBatch SplitOff(DrawnBatch* batch, size_t n) {
  DrawnBatch rest;
  rest.keys = CutValues(&batch->keys, n);
  rest.probabilities = CutValues(&batch->probabilities, n);
  rest.priorities = CutValues(&batch->priorities, n);
  rest.table_sizes = CutValues(&batch->table_sizes, n);
  rest.times_sampled = CutValues(&batch->times_sampled, n);
  rest.rate_limited = CutValues(&batch->rate_limited, n);
  for (DrawnColumn& column : batch->columns) {
    DrawnColumn& other = rest.columns.emplace_back();
    other.dtype = column.dtype;
    other.step_shape = column.step_shape;
    other.squeezed = column.squeezed;
    other.lengths = CutValues(&column.lengths, n);
    other.piece_ends = CutValues(&column.piece_ends, n);
    const uint32_t pieces = n == 0 ? 0 : column.piece_ends.back();
    for (uint32_t& end : other.piece_ends) end -= pieces;
    other.pieces = CutValues(&column.pieces, pieces);
  }
  rest.lease = batch->lease;
  return rest;
}

}  // namespace gear_reverb::batch
