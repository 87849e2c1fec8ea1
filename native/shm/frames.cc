#include "native/shm/frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "native/base/status.h"

namespace gear_reverb::shm {
namespace {

constexpr size_t kFirstCapacity = size_t{4} << 10;
// A buffer that grew beyond this is given back when it is empty.
constexpr size_t kKeptCapacity = size_t{1} << 20;

}  // namespace

std::string MakeFrame(MessageType type, absl::string_view body) {
  const FrameHeader header{static_cast<uint32_t>(type), static_cast<uint32_t>(body.size())};
  std::string frame;
  frame.reserve(sizeof(header) + body.size());
  frame.append(reinterpret_cast<const char*>(&header), sizeof(header));
  frame.append(body.data(), body.size());
  return frame;
}

absl::StatusOr<bool> FrameReader::Receive(const Socket& socket, std::vector<UniqueFd>* fds) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (capacity_ > kKeptCapacity) {
      buffer_ = nullptr;
      capacity_ = 0;
    }
  }
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_) {
    const size_t capacity = std::max(kFirstCapacity, 2 * capacity_);
    std::unique_ptr<char[]> larger(new char[capacity]);
    if (end_ > 0) std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  }
  GR_ASSIGN_OR_RETURN(const size_t received,
                      socket.Receive(buffer_.get() + end_, capacity_ - end_, fds));
  end_ += received;
  return received > 0;
}

absl::StatusOr<std::optional<Frame>> FrameReader::Next(size_t max_body_bytes) {
  FrameHeader header;
  if (end_ - begin_ < sizeof(header)) return std::nullopt;
  std::memcpy(&header, buffer_.get() + begin_, sizeof(header));
  if (header.bytes > max_body_bytes) {
    return base::InvalidArgument("Message of type ", header.type, " has ", header.bytes,
                                 " bytes; at most ", max_body_bytes, " are allowed.");
  }
  if (end_ - begin_ - sizeof(header) < header.bytes) return std::nullopt;
  const Frame frame{static_cast<MessageType>(header.type),
                    {buffer_.get() + begin_ + sizeof(header), header.bytes}};
  begin_ += sizeof(header) + header.bytes;
  return frame;
}

absl::Status Outbox::Send(const Socket& socket, std::string frame, UniqueFd fd) {
  parts_.push_back({std::move(frame), 0, std::move(fd)});
  return Flush(socket);
}

absl::Status Outbox::Flush(const Socket& socket) {
  while (!parts_.empty()) {
    Part& part = parts_.front();
    const absl::string_view rest = absl::string_view(part.bytes).substr(part.sent);
    const absl::StatusOr<size_t> sent = socket.Send(rest, part.fd.get());
    if (!sent.ok()) {
      // A descriptor that cannot be passed does not hold up what follows.
      if (part.sent == 0) parts_.pop_front();
      return sent.status();
    }
    if (*sent == 0) return absl::OkStatus();
    part.fd.reset();
    part.sent += *sent;
    if (part.sent == part.bytes.size()) parts_.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::shm
