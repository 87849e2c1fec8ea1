#include "native/tensor/packed_strings.h"

#include <cstring>

#include "native/base/status.h"

namespace gear_reverb::tensor {
namespace {

uint64_t OffsetAt(absl::Span<const std::byte> packed, int64_t i) {
  uint64_t offset;
  std::memcpy(&offset, packed.data() + i * sizeof(offset), sizeof(offset));
  return offset;
}

}  // namespace

std::string PackStrings(absl::Span<const absl::string_view> values) {
  uint64_t end = 0;
  for (absl::string_view value : values) end += value.size();
  std::string packed;
  packed.reserve((values.size() + 1) * sizeof(uint64_t) + end);
  uint64_t offset = 0;
  auto put_offset = [&] { packed.append(reinterpret_cast<const char*>(&offset), sizeof(offset)); };
  put_offset();
  for (absl::string_view value : values) {
    offset += value.size();
    put_offset();
  }
  for (absl::string_view value : values) packed.append(value.data(), value.size());
  return packed;
}

absl::Status CheckPackedStrings(absl::Span<const std::byte> packed, int64_t count) {
  if (count < 0 || packed.size() / sizeof(uint64_t) < static_cast<uint64_t>(count) + 1) {
    return base::InvalidArgument("String tensor of ", count, " elements has only ", packed.size(),
                                 " bytes.");
  }
  const uint64_t text_bytes = packed.size() - (count + 1) * sizeof(uint64_t);
  uint64_t last = 0;
  for (int64_t i = 0; i <= count; ++i) {
    const uint64_t offset = OffsetAt(packed, i);
    if ((i == 0 && offset != 0) || offset < last || offset > text_bytes) {
      return base::InvalidArgument("String tensor has a bad offset at element ", i, ".");
    }
    last = offset;
  }
  if (last != text_bytes) return base::InvalidArgument("String tensor has trailing bytes.");
  return absl::OkStatus();
}

std::vector<absl::string_view> UnpackStrings(absl::Span<const std::byte> packed, int64_t total,
                                             int64_t begin, int64_t count) {
  const char* text = reinterpret_cast<const char*>(packed.data()) + (total + 1) * sizeof(uint64_t);
  std::vector<absl::string_view> values;
  values.reserve(count);
  for (int64_t i = begin; i < begin + count; ++i) {
    const uint64_t from = OffsetAt(packed, i);
    values.emplace_back(text + from, OffsetAt(packed, i + 1) - from);
  }
  return values;
}

}  // namespace gear_reverb::tensor
