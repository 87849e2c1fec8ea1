// String tensors on TensorFlow's wire: N varint lengths, then the bytes one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace gear_reverb::codec {

// The packed form (see tensor_view.h) of `count` strings. INVALID_ARGUMENT unless `wire` is exactly
// that many lengths and their bytes. Allocates at most 8 bytes per string beyond the size of
// `wire`, and nothing before `wire` is known to be long enough for the lengths.
absl::StatusOr<std::string> PackedFromWire(absl::Span<const std::byte> wire, int64_t count);

// The inverse. `packed` must be a well-formed packing of `count` strings.
std::string WireFromPacked(absl::Span<const std::byte> packed, int64_t count);

}  // namespace gear_reverb::codec
