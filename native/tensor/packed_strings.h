// The in-memory form of string tensors (see tensor_view.h), built, checked and sliced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gear_reverb::tensor {

// Packed bytes of `values`.
std::string PackStrings(absl::Span<const absl::string_view> values);

// INVALID_ARGUMENT unless `packed` is a well-formed packing of exactly `count` strings.
absl::Status CheckPackedStrings(absl::Span<const std::byte> packed, int64_t count);

// Views of elements [begin, begin + count) into `packed`, which must be well formed
// and hold `total` strings.
std::vector<absl::string_view> UnpackStrings(absl::Span<const std::byte> packed, int64_t total,
                                             int64_t begin, int64_t count);

}  // namespace gear_reverb::tensor
