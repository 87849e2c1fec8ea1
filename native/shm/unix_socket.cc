#include "native/shm/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "native/base/philox.h"
#include "native/shm/protocol.h"

namespace gear_reverb::shm {
namespace {

// Descriptors in one message at most; the system drops more.
constexpr size_t kMaxFds = 4;
constexpr int kBacklog = 4096;
// Many clients that come at once may have to wait for so long to get into the queue.
constexpr int kConnectTries = 100;
constexpr absl::Duration kConnectPause = absl::Milliseconds(1);

absl::Status Failed(const char* call) {
  const std::string text = absl::StrCat(call, " failed: ", std::strerror(errno), ".");
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: return absl::ResourceExhaustedError(text);
    default: return absl::UnavailableError(text);
  }
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

socklen_t FillAddress(const std::string& name, sockaddr_un* address) {
  std::memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  // A first byte of 0 makes the name abstract: it is no file, and goes with the socket.
  const size_t bytes = std::min(name.size(), sizeof(address->sun_path) - 1);
  std::memcpy(address->sun_path + 1, name.data(), bytes);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

absl::Status CheckPeer(int fd) {
  ucred peer;
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return Failed("SO_PEERCRED");
  if (peer.uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("The peer is of user ", peer.uid, ", not ", geteuid(), "."));
  }
  return absl::OkStatus();
}

bool Wait(int fd, short events, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    // Rounded up, so that the last wait does not spin.
    const int64_t ms = timeout == absl::InfiniteDuration()
                           ? -1
                           : absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<int64_t>(ms, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // The call that follows tells.
    if (ready == 0 && ms <= INT_MAX) return false;
  }
}

}  // namespace

std::string Socket::RandomName() {
  return absl::StrCat(kSocketPrefix, absl::Hex(base::RandomUint64(), absl::kZeroPad16),
                      absl::Hex(base::RandomUint64(), absl::kZeroPad16));
}

bool Socket::IsName(absl::string_view name) {
  constexpr size_t kPrefixBytes = sizeof(kSocketPrefix) - 1;
  return name.size() == kPrefixBytes + 32 && absl::StartsWith(name, kSocketPrefix) &&
         std::all_of(name.begin() + kPrefixBytes, name.end(), absl::ascii_isxdigit);
}

absl::StatusOr<Socket> Socket::Listen(const std::string& name) {
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return Failed("socket");
  sockaddr_un address;
  const socklen_t bytes = FillAddress(name, &address);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return Failed("bind");
  if (listen(fd.get(), kBacklog) != 0) return Failed("listen");
  return Socket(std::move(fd));
}

absl::StatusOr<Socket> Socket::Connect(const std::string& name) {
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return Failed("socket");
  sockaddr_un address;
  const socklen_t bytes = FillAddress(name, &address);
  // Done or refused at once; EAGAIN when too many wait to be accepted.
  for (int i = 1; connect(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0; ++i) {
    if ((errno != EAGAIN && errno != EINTR) || i == kConnectTries) return Failed("connect");
    absl::SleepFor(kConnectPause);
  }
  if (absl::Status status = CheckPeer(fd.get()); !status.ok()) return status;
  return Socket(std::move(fd));
}

absl::StatusOr<Socket> Socket::Accept() const {
  UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return Failed("accept");
    }
    return absl::NotFoundError("Nobody waits.");
  }
  if (absl::Status status = CheckPeer(fd.get()); !status.ok()) return status;
  return Socket(std::move(fd));
}

absl::StatusOr<size_t> Socket::Send(absl::string_view bytes, int fd) const {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  while (true) {
    const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return Failed("sendmsg");
  }
}

absl::StatusOr<size_t> Socket::Receive(char* buffer, size_t bytes,
                                       std::vector<UniqueFd>* fds) const {
  iovec data{buffer, bytes};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  if (fds != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  ssize_t received;
  do {
    received = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    return Failed("recvmsg");
  }
  if (fds != nullptr) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        fds->emplace_back(fd);
      }
    }
  }
  if (received == 0) return absl::UnavailableError("The connection has ended.");
  return static_cast<size_t>(received);
}

bool Socket::WaitReadable(absl::Duration timeout) const {
  return Wait(fd_.get(), POLLIN | POLLRDHUP, timeout);
}

bool Socket::WaitWritable(absl::Duration timeout) const {
  return Wait(fd_.get(), POLLOUT, timeout);
}

bool Socket::PeerIsThere() const { return !Wait(fd_.get(), POLLRDHUP, absl::ZeroDuration()); }

void Socket::Shutdown() const { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace gear_reverb::shm
