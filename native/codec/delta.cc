#include "native/codec/delta.h"

#include <cstring>

namespace gear_reverb::codec {
namespace {

enum class Direction { kEncode, kDecode };

// row = row -/+ other, element by element. The copies through memcpy are loads and stores that
// need no alignment; the loop vectorises, since the rows do not overlap.
template <typename Unsigned, Direction direction>
void Combine(std::byte* __restrict row, const std::byte* __restrict other, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    Unsigned a, b;
    std::memcpy(&a, row + i * sizeof(a), sizeof(a));
    std::memcpy(&b, other + i * sizeof(b), sizeof(b));
    a = static_cast<Unsigned>(direction == Direction::kEncode ? a - b : a + b);
    std::memcpy(row + i * sizeof(a), &a, sizeof(a));
  }
}

template <typename Unsigned, Direction direction>
void CodeRows(std::byte* data, size_t rows, size_t row_bytes) {
  const size_t elements = row_bytes / sizeof(Unsigned);
  // Encoding needs the row before as it was, decoding as it has become.
  if (direction == Direction::kEncode) {
    for (size_t i = rows - 1; i > 0; --i) {
      Combine<Unsigned, direction>(data + i * row_bytes, data + (i - 1) * row_bytes, elements);
    }
  } else {
    for (size_t i = 1; i < rows; ++i) {
      Combine<Unsigned, direction>(data + i * row_bytes, data + (i - 1) * row_bytes, elements);
    }
  }
}

template <Direction direction>
void Code(tensor::DType dtype, absl::Span<const int64_t> shape, absl::Span<std::byte> data) {
  if (!tensor::IsIntegral(dtype) || shape.size() < 2 || shape[0] < 2 || data.empty()) return;
  const auto rows = static_cast<size_t>(shape[0]);
  const size_t width = tensor::ByteSize(dtype);
  if (data.size() % rows != 0 || data.size() / rows % width != 0) return;
  const size_t row_bytes = data.size() / rows;
  switch (width) {
    case 1: return CodeRows<uint8_t, direction>(data.data(), rows, row_bytes);
    case 2: return CodeRows<uint16_t, direction>(data.data(), rows, row_bytes);
    case 4: return CodeRows<uint32_t, direction>(data.data(), rows, row_bytes);
    case 8: return CodeRows<uint64_t, direction>(data.data(), rows, row_bytes);
  }
}

}  // namespace

void DeltaEncode(tensor::DType dtype, absl::Span<const int64_t> shape, absl::Span<std::byte> data) {
  Code<Direction::kEncode>(dtype, shape, data);
}

void DeltaDecode(tensor::DType dtype, absl::Span<const int64_t> shape, absl::Span<std::byte> data) {
  Code<Direction::kDecode>(dtype, shape, data);
}

}  // namespace gear_reverb::codec
