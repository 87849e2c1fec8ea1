// A control connection to a server over shared memory: samples, leases, priorities.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/shm/control_records.h"
#include "native/shm/drawn_record.h"
#include "native/shm/frames.h"
#include "native/shm/segment_map.h"

namespace gear_reverb::client {

// What all of a client's connections to one server share. Thread-safe.
struct ShmPeer {
  ShmPeer(std::string socket_name, std::string token, bool forced)
      : socket_name(std::move(socket_name)), token(std::move(token)), forced(forced) {}

  // Connects and greets; does not wait for the answer. `ring` goes along with an insert stream.
  absl::StatusOr<shm::Socket> Open(shm::Role role, int ring = -1) const;

  // UNAVAILABLE, so that callers try another way; where this one is forced, FAILED_PRECONDITION.
  absl::Status Refuse(const std::string& why);

  const std::string socket_name;
  const std::string token;
  const bool forced;
  shm::SegmentMap segments;
  std::atomic<uint32_t> features{0};  // As its last welcome said.
  std::atomic<bool> gone{false};      // The server is no longer there.
  std::atomic<bool> refused{false};   // It is, but cannot share its memory with this process.
};

// Thread-compatible, but leases may be released by any thread.
class ShmControl : public std::enable_shared_from_this<ShmControl> {
 public:
  // Waits for the server's welcome. UNAVAILABLE, RESOURCE_EXHAUSTED, or the server's answer.
  static absl::StatusOr<std::shared_ptr<ShmControl>> Open(std::shared_ptr<ShmPeer> peer,
                                                          absl::Time deadline);
  ~ShmControl();

  // Adds what was released since the last request.
  absl::Status Request(shm::DrawRequest request);

  // The next answer to a request, each batch with its lease; nullopt if there is none by
  // `wait_until`. UNAVAILABLE if the server has gone, CANCELLED when the program interrupts.
  struct Answer {
    absl::Status failed;  // In place of batches. The connection goes on.
    std::vector<batch::DrawnBatch> groups;
  };
  absl::StatusOr<std::optional<Answer>> Next(absl::Time wait_until);
  // The same after Cancel, for a request that was not answered before: the server answers all.
  absl::StatusOr<std::optional<Answer>> NextAfterCancel(absl::Time wait_until);

  absl::Status MutatePriorities(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys, absl::Time deadline);

  // Has the server give back no memory any more; see shm::MessageType::kKeepMemory. UNIMPLEMENTED
  // by a server that knows nothing of it, FAILED_PRECONDITION by one that will not.
  absl::Status KeepMemory(absl::Time deadline);

  // Whether the server is at the other end, as far as the system knows.
  bool PeerIsThere() const { return socket_.PeerIsThere(); }
  // Ends Next, and all that follows, with CANCELLED; from any thread. Leases stay.
  void Cancel();

 private:
  class Lease;

  ShmControl(std::shared_ptr<ShmPeer> peer, shm::Socket socket)
      : peer_(std::move(peer)), socket_(std::move(socket)) {}

  // The next message that is not about segments. Once cancelled, only those that have come, unless
  // `after_cancel`.
  absl::StatusOr<std::optional<shm::Frame>> Receive(absl::Time deadline, bool after_cancel = false);
  absl::StatusOr<Answer> ReadAnswer(const shm::Frame& frame);
  absl::Status OnSegment(const shm::Frame& frame);
  absl::Status OnGone(const shm::Frame& frame);
  absl::StatusOr<Answer> ReadDrawn(const shm::Frame& frame);
  absl::Status Send(std::string frame);
  absl::Status Lost(const absl::Status& status);

  void Release(uint64_t lease);
  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(released_mutex_);
  void SendReleased();

  const std::shared_ptr<ShmPeer> peer_;
  const shm::Socket socket_;
  shm::FrameReader reader_;
  std::vector<shm::UniqueFd> fds_;  // Received, and not yet asked for by a message.
  std::atomic<bool> cancelled_{false};

  base::Mutex send_mutex_;
  base::Mutex released_mutex_;
  std::vector<uint64_t> released_ ABSL_GUARDED_BY(released_mutex_);
  bool timer_set_ ABSL_GUARDED_BY(released_mutex_) = false;
};

}  // namespace gear_reverb::client
