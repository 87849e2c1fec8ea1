// Messages on a socket: a header, then as many bytes as it says.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/shm/protocol.h"
#include "native/shm/unix_socket.h"

namespace gear_reverb::shm {

struct Frame {
  MessageType type;
  absl::string_view body;
};

// Header and body as they are sent.
std::string MakeFrame(MessageType type, absl::string_view body = {});

// Thread-compatible. Cuts what a socket receives into messages. Memory grows with what has come,
// not with what a header says will come.
class FrameReader {
 public:
  // Takes what the socket has; false if it has nothing now. Errors of Socket::Receive.
  absl::StatusOr<bool> Receive(const Socket& socket, std::vector<UniqueFd>* fds);

  // The next message that is there whole, valid until Receive. INVALID_ARGUMENT for a body longer
  // than `max_body_bytes`.
  absl::StatusOr<std::optional<Frame>> Next(size_t max_body_bytes = kMaxBodyBytes);

 private:
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;  // Of what was received and not yet given out,
  size_t end_ = 0;    // and its end.
};

// Thread-compatible. What a socket has not taken yet.
class Outbox {
 public:
  // Sends, or keeps, a message; `fd` travels with its first byte. UNAVAILABLE without a peer,
  // RESOURCE_EXHAUSTED if the system cannot pass the descriptor.
  absl::Status Send(const Socket& socket, std::string frame, UniqueFd fd = {});
  absl::Status Flush(const Socket& socket);
  bool empty() const { return parts_.empty(); }

 private:
  struct Part {
    std::string bytes;
    size_t sent;
    UniqueFd fd;
  };
  std::deque<Part> parts_;
};

}  // namespace gear_reverb::shm
