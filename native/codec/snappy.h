// Snappy's raw format (not framed): a varint of the uncompressed length, then elements.
//
// A stream of one literal is legal Snappy that costs a memcpy: LiteralHeader makes it, and
// Decompress knows it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace gear_reverb::codec {

// Snappy's format ends here: its length is a 32-bit varint.
inline constexpr size_t kMaxSnappyBytes = 0xffffffff;

// `raw` compressed. More than kMaxSnappyBytes bytes have no Snappy form: the result is then empty,
// which no decoder takes.
std::string Compress(absl::Span<const std::byte> raw);

// The bytes which, put before `raw_bytes` raw bytes, make one legal stream of a single literal; for
// 0 the header alone is the stream. `raw_bytes` above kMaxSnappyBytes gives an empty string.
std::string LiteralHeader(size_t raw_bytes);

// The length that the stream declares. INVALID_ARGUMENT if it does not start with one.
absl::StatusOr<size_t> UncompressedLength(absl::Span<const std::byte> compressed);

// The raw bytes as they lie in `compressed` where it is a whole stream of one literal.
std::optional<absl::Span<const std::byte>> AsLiteral(absl::Span<const std::byte> compressed);

// INVALID_ARGUMENT unless `compressed` is valid and holds exactly out.size() bytes. On an error the
// content of `out` is unspecified; nothing is ever written beyond it.
absl::Status Decompress(absl::Span<const std::byte> compressed, absl::Span<std::byte> out);

}  // namespace gear_reverb::codec
