// Unix sockets with abstract names, between processes of one user; descriptors travel over them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "native/shm/unique_fd.h"

namespace gear_reverb::shm {

// Thread-compatible, but one thread may send while another receives. Never blocks but in Wait.
class Socket {
 public:
  Socket() = default;
  explicit Socket(UniqueFd fd) : fd_(std::move(fd)) {}

  // A name with 128 random bits.
  static std::string RandomName();
  // Whether RandomName may have made `name`.
  static bool IsName(absl::string_view name);

  static absl::StatusOr<Socket> Listen(const std::string& name);
  // UNAVAILABLE if nobody listens, PERMISSION_DENIED unless the listener is of this user.
  static absl::StatusOr<Socket> Connect(const std::string& name);
  // NOT_FOUND if nobody waits, PERMISSION_DENIED (and the connection closed) for another user,
  // RESOURCE_EXHAUSTED without descriptors or memory.
  absl::StatusOr<Socket> Accept() const;

  // Bytes that the system took, 0 if it has no room now. `fd`, if any, goes with the first of
  // them. UNAVAILABLE if the peer has gone.
  absl::StatusOr<size_t> Send(absl::string_view bytes, int fd = -1) const;
  // Bytes received, 0 if there are none now. Descriptors are added to `fds`; null: none are
  // accepted. UNAVAILABLE at the end of the connection.
  absl::StatusOr<size_t> Receive(char* buffer, size_t bytes, std::vector<UniqueFd>* fds) const;

  // Until there is something to receive (or room to send) or the connection has ended; false if
  // `timeout` passed first.
  bool WaitReadable(absl::Duration timeout) const;
  bool WaitWritable(absl::Duration timeout) const;

  // Whether the peer is still there, as far as the system knows.
  bool PeerIsThere() const;
  // Ends the connection for both sides; threads that wait return. The descriptor stays.
  void Shutdown() const;

  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }

 private:
  UniqueFd fd_;
};

}  // namespace gear_reverb::shm
