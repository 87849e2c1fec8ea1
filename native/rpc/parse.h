// Guards the reading of protobuf messages: malformed bytes become INVALID_ARGUMENT.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "native/base/status.h"
#include "protozero/pbf_reader.hpp"

namespace gear_reverb::rpc {

// Runs `read`, which reads a message named `what` and returns an absl::Status.
template <typename Read>
absl::Status Guarded(const char* what, Read read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    return base::InvalidArgument("Malformed ", what, ": ", error.what());
  }
}

inline absl::string_view ToStringView(protozero::data_view view) {
  return {view.data(), view.size()};
}
inline protozero::data_view ToDataView(absl::string_view view) {
  return {view.data(), view.size()};
}
inline absl::Span<const std::byte> ToBytes(absl::string_view view) {
  return {reinterpret_cast<const std::byte*>(view.data()), view.size()};
}

// Appends a `repeated uint64` field, packed or not, standing at `reader`.
template <typename Vector>
void ReadRepeatedUint64(protozero::pbf_reader& reader, Vector* out) {
  if (reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
    for (uint64_t value : reader.get_packed_uint64()) out->push_back(value);
  } else {
    out->push_back(reader.get_uint64());
  }
}

// The varint standing at `reader`. Its get_bool would read a byte past the end of a message that is
// cut off behind the field's tag.
inline bool ReadBool(protozero::pbf_reader& reader) { return reader.get_uint64() != 0; }

// A received message as one run of bytes: the buffer's own if it is one slice, else a copy.
class FlatMessage {
 public:
  static absl::StatusOr<FlatMessage> Create(const grpc::ByteBuffer& buffer) {
    FlatMessage message;
    if (!buffer.Valid()) return message;  // An empty message.
    if (grpc::Status status = buffer.TrySingleSlice(&message.slice_); !status.ok()) {
      status = buffer.DumpToSingleSlice(&message.slice_);
      if (!status.ok()) return base::Internal("Cannot read a message: ", status.error_message());
    }
    return message;
  }

  absl::string_view view() const {
    return {reinterpret_cast<const char*>(slice_.begin()), slice_.size()};
  }

 private:
  grpc::Slice slice_;
};

}  // namespace gear_reverb::rpc
