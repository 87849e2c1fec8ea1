#include "native/codec/wire_strings.h"

#include <cstring>
#include <optional>

#include "native/base/status.h"
#include "native/codec/varint.h"

namespace gear_reverb::codec {

absl::StatusOr<std::string> PackedFromWire(absl::Span<const std::byte> wire, int64_t count) {
  // Every length takes a byte at least.
  if (count < 0 || static_cast<uint64_t>(count) > wire.size()) {
    return base::InvalidArgument("String tensor of ", count, " elements has only ", wire.size(),
                                 " bytes.");
  }
  const size_t offsets_bytes = (static_cast<size_t>(count) + 1) * sizeof(uint64_t);
  std::string packed;
  packed.reserve(offsets_bytes + wire.size() - count);
  packed.resize(offsets_bytes);
  uint64_t offset = 0;
  std::memcpy(packed.data(), &offset, sizeof(offset));
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<uint64_t> length = TakeVarint(&wire);
    // `wire` shrinks as lengths are taken, so what fitted before may no longer.
    if (!length || offset > wire.size() || *length > wire.size() - offset) {
      return base::InvalidArgument("String tensor has a bad length at element ", i, ".");
    }
    offset += *length;
    std::memcpy(packed.data() + (i + 1) * sizeof(offset), &offset, sizeof(offset));
  }
  if (offset != wire.size()) {
    return base::InvalidArgument("String tensor has ", wire.size(), " bytes of text instead of ",
                                 offset, ".");
  }
  packed.append(reinterpret_cast<const char*>(wire.data()), wire.size());
  return packed;
}

std::string WireFromPacked(absl::Span<const std::byte> packed, int64_t count) {
  const size_t offsets_bytes = (static_cast<size_t>(count) + 1) * sizeof(uint64_t);
  const size_t text_bytes = packed.size() - offsets_bytes;
  std::string wire;
  wire.reserve(text_bytes + 2 * static_cast<size_t>(count));
  uint64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t to;
    std::memcpy(&to, packed.data() + (i + 1) * sizeof(to), sizeof(to));
    AppendVarint(to - from, &wire);
    from = to;
  }
  wire.append(reinterpret_cast<const char*>(packed.data()) + offsets_bytes, text_bytes);
  return wire;
}

}  // namespace gear_reverb::codec
