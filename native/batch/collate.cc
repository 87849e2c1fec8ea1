#include "native/batch/collate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "native/base/status.h"

namespace gear_reverb::batch {
namespace {

using tensor::DType;

constexpr int64_t kMostSteps = std::numeric_limits<int32_t>::max();  // cu_seqlens are int32.

// Steps that the column's array has room for: per item, or, if packed, in all.
absl::StatusOr<int64_t> StepsOf(const DrawnBatch& batch, size_t index, Ragged ragged,
                                int64_t pad_to) {
  const std::vector<int32_t>& lengths = batch.columns[index].lengths;
  if (lengths.empty() || batch.columns[index].squeezed) return 1;
  switch (ragged) {
    case Ragged::kError:
      for (size_t i = 1; i < lengths.size(); ++i) {
        if (lengths[i] != lengths[0]) {
          return base::InvalidArgument(
              "Column ", index, " has ", lengths[0], " steps in item ", batch.keys[0], " but ",
              lengths[i], " in item ", batch.keys[i],
              ". Sample with ragged='pad' or ragged='pack', or items of one length.");
        }
      }
      return lengths[0];
    case Ragged::kPad: {
      const auto longest = std::max_element(lengths.begin(), lengths.end());
      if (pad_to == 0) return *longest;
      if (*longest <= pad_to) return pad_to;
      return base::InvalidArgument("Column ", index, " has ", *longest, " steps in item ",
                                   batch.keys[longest - lengths.begin()],
                                   ", which is more than pad_to (", pad_to, ").");
    }
    case Ragged::kPack: return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  }
  return base::Internal("No such ragged policy: ", static_cast<int>(ragged));
}

// `a * b` or `a + b`, or the largest number if that is less.
size_t Times(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}
size_t Plus(size_t a, size_t b) {
  size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

void ZeroTail(std::byte* begin, std::byte* end) { std::memset(begin, 0, end - begin); }

}  // namespace

absl::StatusOr<BatchLayout> Plan(const DrawnBatch& batch, Ragged ragged, size_t max_bytes,
                                 int64_t pad_to) {
  BatchLayout layout;
  layout.ragged = ragged;
  layout.columns.resize(batch.columns.size());
  size_t total_bytes = 0;  // What the limit is about.
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    const DrawnColumn& drawn = batch.columns[i];
    CollatedColumn& column = layout.columns[i];
    GR_ASSIGN_OR_RETURN(column.steps, StepsOf(batch, i, ragged, pad_to));
    if (column.steps > kMostSteps) {
      return base::InvalidArgument("Column ", i, " would have ", column.steps,
                                   " steps, which is more than a batch can have.");
    }
    column.dtype = drawn.dtype;
    const bool packed = ragged == Ragged::kPack && !drawn.squeezed;
    if (!packed) column.shape.push_back(batch.size());
    if (!drawn.squeezed) column.shape.push_back(column.steps);
    column.shape.insert(column.shape.end(), drawn.step_shape.begin(), drawn.step_shape.end());
    column.step_elements = 1;
    for (const int64_t axis : drawn.step_shape) column.step_elements *= axis;
    const size_t elements = Times(Times(packed ? 1 : batch.size(), column.steps),
                                  static_cast<size_t>(column.step_elements));
    size_t bytes;
    if (drawn.dtype == DType::kString) {
      bytes = Times(elements, sizeof(void*));
      for (const Piece& piece : drawn.pieces) bytes = Plus(bytes, piece.bytes);
    } else {
      column.step_bytes = column.step_elements * tensor::ByteSize(drawn.dtype);
      bytes = column.bytes = Times(elements, tensor::ByteSize(drawn.dtype));
      column.offset = layout.buffer_bytes;
      layout.buffer_bytes = Plus(layout.buffer_bytes, Plus(bytes, layout.kColumnAlignment - 1)) /
                            layout.kColumnAlignment * layout.kColumnAlignment;
    }
    total_bytes = Plus(total_bytes, bytes);
    if (ragged == Ragged::kPad && !drawn.squeezed) {  // Its mask.
      total_bytes = Plus(total_bytes, Times(batch.size(), column.steps));
    }
    if (total_bytes > max_bytes || total_bytes == SIZE_MAX) {
      return base::InvalidArgument("A batch of ", batch.size(), " items needs ", total_bytes,
                                   " bytes up to its column ", i,
                                   ", which is more than max_bytes (", max_bytes, ").");
    }
  }
  return layout;
}

void Collate(const DrawnBatch& batch, const BatchLayout& layout, std::byte* buffer,
             const kernels::GatherOptions& options) {
  std::vector<kernels::Copy> copies;
  size_t pieces = 0;
  for (const DrawnColumn& drawn : batch.columns) {
    if (drawn.dtype != DType::kString) pieces += drawn.pieces.size();
  }
  copies.reserve(pieces);
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    const DrawnColumn& drawn = batch.columns[i];
    const CollatedColumn& column = layout.columns[i];
    if (column.bytes == 0) continue;
    const bool packed = layout.ragged == Ragged::kPack && !drawn.squeezed;
    std::byte* to = buffer + column.offset;
    size_t piece = 0;
    for (size_t item = 0; item < batch.size(); ++item) {
      std::byte* const begin = to;
      for (; piece < drawn.piece_ends[item]; ++piece) {
        if (drawn.pieces[piece].bytes == 0) continue;
        copies.push_back({drawn.pieces[piece].data, to, drawn.pieces[piece].bytes});
        to += drawn.pieces[piece].bytes;
      }
      if (packed) continue;
      std::byte* const end = begin + column.steps * column.step_bytes;
      if (to != end) ZeroTail(to, end);
      to = end;
    }
  }
  kernels::Gather(copies, options);
}

bool LengthsAgree(const DrawnBatch& batch) {
  const DrawnColumn* first = nullptr;
  for (const DrawnColumn& column : batch.columns) {
    if (column.squeezed) continue;
    if (first == nullptr) {
      first = &column;
    } else if (column.lengths != first->lengths) {
      return false;
    }
  }
  return true;
}

absl::Status ImportanceWeights(const DrawnBatch& batch, double beta, absl::Span<float> weights) {
  // In logarithms, so that neither a large table nor a large beta overflows.
  std::vector<double> logs(batch.size());
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!(batch.probabilities[i] > 0) || batch.table_sizes[i] < 1) {
      return base::InvalidArgument("Item ", batch.keys[i], " was drawn with probability ",
                                   batch.probabilities[i], " from a table of ",
                                   batch.table_sizes[i], " items: it has no importance weight.");
    }
    logs[i] = -beta * (std::log(batch.probabilities[i]) +
                       std::log(static_cast<double>(batch.table_sizes[i])));
    largest = std::max(largest, logs[i]);
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    weights[i] = static_cast<float>(std::exp(logs[i] - largest));
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::batch
