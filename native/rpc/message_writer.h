// Builds a protobuf message as a list of pieces, so that large fields go out without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"

namespace gear_reverb::rpc {

// Thread-compatible. Fields appear in the order of the calls.
class MessageWriter {
 public:
  void AddUint64(uint32_t field, uint64_t value);
  void AddInt64(uint32_t field, int64_t value) { AddUint64(field, static_cast<uint64_t>(value)); }
  void AddBool(uint32_t field, bool value) { AddUint64(field, value ? 1 : 0); }
  void AddDouble(uint32_t field, double value);
  void AddBytes(uint32_t field, absl::string_view value);
  void AddPackedUint64(uint32_t field, absl::Span<const uint64_t> values);
  void AddMessage(uint32_t field, MessageWriter message);
  // A bytes field made of `prefix` and then `bytes`, which are not copied if they are large;
  // `owner` keeps them alive until the message is sent.
  void AddSharedBytes(uint32_t field, absl::string_view prefix, absl::Span<const std::byte> bytes,
                      std::shared_ptr<const void> owner);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Both leave the writer empty.
  grpc::ByteBuffer TakeByteBuffer();
  std::string TakeString();

 private:
  struct Piece {
    std::string bytes;                   // If `owner` is null.
    absl::Span<const std::byte> shared;  // Otherwise.
    std::shared_ptr<const void> owner;
  };

  void AddTag(uint32_t field, uint32_t wire_type);
  void AddVarint(uint64_t value);
  // The piece that takes small fields.
  std::string& tail();

  absl::InlinedVector<Piece, 1> pieces_;  // Most messages are small: no allocation for them.
  size_t size_ = 0;
};

}  // namespace gear_reverb::rpc
