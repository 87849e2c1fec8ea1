#include "native/rpc/message_writer.h"

#include <cstring>
#include <utility>

#include "grpcpp/support/slice.h"

namespace gear_reverb::rpc {
namespace {

// Below this a copy is cheaper than a slice of its own.
constexpr size_t kShareFromBytes = 2048;

constexpr uint32_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2;

int VarintBytes(uint64_t value) {
  int bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

}  // namespace

std::string& MessageWriter::tail() {
  if (pieces_.empty() || pieces_.back().owner != nullptr) pieces_.emplace_back();
  return pieces_.back().bytes;
}

void MessageWriter::AddVarint(uint64_t value) {
  std::string& out = tail();
  const size_t before = out.size();
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  size_ += out.size() - before;
}

void MessageWriter::AddTag(uint32_t field, uint32_t wire_type) {
  AddVarint(field << 3 | wire_type);
}

void MessageWriter::AddUint64(uint32_t field, uint64_t value) {
  AddTag(field, kVarint);
  AddVarint(value);
}

void MessageWriter::AddDouble(uint32_t field, double value) {
  AddTag(field, kFixed64);
  tail().append(reinterpret_cast<const char*>(&value), sizeof(value));
  size_ += sizeof(value);
}

void MessageWriter::AddBytes(uint32_t field, absl::string_view value) {
  AddTag(field, kLengthDelimited);
  AddVarint(value.size());
  tail().append(value.data(), value.size());
  size_ += value.size();
}

void MessageWriter::AddPackedUint64(uint32_t field, absl::Span<const uint64_t> values) {
  if (values.empty()) return;
  size_t bytes = 0;
  for (uint64_t value : values) bytes += VarintBytes(value);
  AddTag(field, kLengthDelimited);
  AddVarint(bytes);
  for (uint64_t value : values) AddVarint(value);
}

void MessageWriter::AddMessage(uint32_t field, MessageWriter message) {
  AddTag(field, kLengthDelimited);
  AddVarint(message.size_);
  for (Piece& piece : message.pieces_) {
    if (piece.owner == nullptr) {
      tail().append(piece.bytes);
    } else {
      pieces_.push_back(std::move(piece));
    }
  }
  size_ += message.size_;
}

void MessageWriter::AddSharedBytes(uint32_t field, absl::string_view prefix,
                                   absl::Span<const std::byte> bytes,
                                   std::shared_ptr<const void> owner) {
  AddTag(field, kLengthDelimited);
  AddVarint(prefix.size() + bytes.size());
  tail().append(prefix.data(), prefix.size());
  if (bytes.size() < kShareFromBytes) {
    tail().append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    pieces_.push_back({{}, bytes, std::move(owner)});
  }
  size_ += prefix.size() + bytes.size();
}

grpc::ByteBuffer MessageWriter::TakeByteBuffer() {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces_.size());
  for (Piece& piece : pieces_) {
    if (piece.owner == nullptr) {
      slices.emplace_back(piece.bytes);
    } else {
      auto* owner = new std::shared_ptr<const void>(std::move(piece.owner));
      slices.emplace_back(
          const_cast<std::byte*>(piece.shared.data()), piece.shared.size(),
          [](void* p) { delete static_cast<std::shared_ptr<const void>*>(p); }, owner);
    }
  }
  pieces_.clear();
  size_ = 0;
  if (slices.empty()) slices.emplace_back(std::string());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string MessageWriter::TakeString() {
  std::string out;
  out.reserve(size_);
  for (const Piece& piece : pieces_) {
    if (piece.owner == nullptr) {
      out.append(piece.bytes);
    } else {
      out.append(reinterpret_cast<const char*>(piece.shared.data()), piece.shared.size());
    }
  }
  pieces_.clear();
  size_ = 0;
  return out;
}

}  // namespace gear_reverb::rpc
