#include "native/tensor/shape.h"

#include "absl/strings/str_join.h"
#include "native/base/status.h"

namespace gear_reverb::tensor {

absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  bool overflow = false;
  for (int64_t axis : shape) {
    if (axis < 0) {
      return base::InvalidArgument("Shape ", ShapeString(shape), " has a negative axis.");
    }
    // An axis of 0 makes the count 0 but must not hide an overflow before or after it.
    overflow |= __builtin_mul_overflow(count, axis == 0 ? 1 : axis, &count);
  }
  if (overflow) {
    return base::InvalidArgument("Shape ", ShapeString(shape), " has too many elements.");
  }
  for (int64_t axis : shape) {
    if (axis == 0) return 0;
  }
  return count;
}

absl::StatusOr<int64_t> NumBytes(DType dtype, absl::Span<const int64_t> shape) {
  const auto element = static_cast<int64_t>(ByteSize(dtype));
  if (element == 0) {
    return base::InvalidArgument("Type ", Name(dtype), " has no fixed element size.");
  }
  GR_ASSIGN_OR_RETURN(const int64_t count, NumElements(shape));
  int64_t bytes;
  if (__builtin_mul_overflow(count, element, &bytes)) {
    return base::InvalidArgument("Shape ", ShapeString(shape), " of ", Name(dtype),
                                 " has too many bytes.");
  }
  return bytes;
}

std::string ShapeString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace gear_reverb::tensor
