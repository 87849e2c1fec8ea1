#include "native/codec/snappy.h"

#include <snappy.h>

#include <cstdint>
#include <cstring>

#include "native/base/status.h"
#include "native/codec/varint.h"

namespace gear_reverb::codec {
namespace {

// A literal's tag byte is length - 1 in the upper six bits; 60 to 63 there mean that length - 1
// follows in 1 to 4 little-endian bytes.
constexpr size_t kLongestInlineLiteral = 60;

// Takes the tag of a literal off the front of `elements` and returns the literal's length, or 0
// if no literal stands there.
uint64_t TakeLiteralTag(absl::Span<const std::byte>* elements) {
  if (elements->empty()) return 0;
  const auto tag = static_cast<uint8_t>(elements->front());
  if ((tag & 3) != 0) return 0;
  const size_t code = tag >> 2;
  if (code < kLongestInlineLiteral) {
    elements->remove_prefix(1);
    return code + 1;
  }
  const size_t width = code - kLongestInlineLiteral + 1;
  if (elements->size() < 1 + width) return 0;
  uint64_t length = 1;
  for (size_t i = 0; i < width; ++i) {
    length += static_cast<uint64_t>((*elements)[1 + i]) << (8 * i);
  }
  elements->remove_prefix(1 + width);
  return length;
}

}  // namespace

std::string Compress(absl::Span<const std::byte> raw) {
  std::string compressed;
  if (raw.size() > kMaxSnappyBytes) return compressed;
  if (raw.empty()) return LiteralHeader(0);
  snappy::Compress(reinterpret_cast<const char*>(raw.data()), raw.size(), &compressed);
  return compressed;
}

std::string LiteralHeader(size_t raw_bytes) {
  std::string header;
  if (raw_bytes > kMaxSnappyBytes) return header;
  AppendVarint(raw_bytes, &header);
  if (raw_bytes == 0) return header;
  const size_t last = raw_bytes - 1;
  if (last < kLongestInlineLiteral) {
    header.push_back(static_cast<char>(last << 2));
    return header;
  }
  size_t width = 1;
  while (last >> (8 * width) != 0) ++width;
  header.push_back(static_cast<char>((kLongestInlineLiteral - 1 + width) << 2));
  for (size_t i = 0; i < width; ++i) header.push_back(static_cast<char>(last >> (8 * i)));
  return header;
}

absl::StatusOr<size_t> UncompressedLength(absl::Span<const std::byte> compressed) {
  const size_t total = compressed.size();
  const auto length = TakeVarint(&compressed);
  // Snappy's decoder takes no more than five bytes, even where a sixth would add only zeros.
  if (!length || *length > kMaxSnappyBytes || total - compressed.size() > 5) {
    return base::InvalidArgument("Compressed data of ", total, " bytes has no valid length.");
  }
  return *length;
}

std::optional<absl::Span<const std::byte>> AsLiteral(absl::Span<const std::byte> compressed) {
  const absl::StatusOr<size_t> length = UncompressedLength(compressed);
  if (!length.ok() || *length == 0) return std::nullopt;
  TakeVarint(&compressed);
  if (TakeLiteralTag(&compressed) != *length || compressed.size() != *length) return std::nullopt;
  return compressed;
}

absl::Status Decompress(absl::Span<const std::byte> compressed, absl::Span<std::byte> out) {
  GR_ASSIGN_OR_RETURN(const size_t length, UncompressedLength(compressed));
  if (length != out.size()) {
    return base::InvalidArgument("Compressed data holds ", length, " bytes instead of ", out.size(),
                                 ".");
  }
  absl::Span<const std::byte> elements = compressed;
  TakeVarint(&elements);
  if (length == 0) {
    if (elements.empty()) return absl::OkStatus();
    return base::InvalidArgument("Compressed data of no bytes has trailing bytes.");
  }
  if (const auto literal = AsLiteral(compressed)) {
    std::memcpy(out.data(), literal->data(), length);
    return absl::OkStatus();
  }
  if (!snappy::RawUncompress(reinterpret_cast<const char*>(compressed.data()), compressed.size(),
                             reinterpret_cast<char*>(out.data()))) {
    return base::InvalidArgument("Compressed data of ", compressed.size(), " bytes is corrupt.");
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::codec
