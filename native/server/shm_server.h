// The shared-memory face of a ReplayService: a Unix socket for the processes of this host and user.
//
// A few threads serve all connections: they wait in one epoll for whichever needs them, so that
// idle clients cost none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/service/replay_service.h"
#include "native/shm/unix_socket.h"

namespace gear_reverb::server {

class ShmSession;

// Thread-safe.
class ShmServer {
 public:
  // FAILED_PRECONDITION where memory cannot be given away read-only (no /proc), UNAVAILABLE or
  // RESOURCE_EXHAUSTED without sockets.
  static absl::StatusOr<std::unique_ptr<ShmServer>> Start(
      std::shared_ptr<service::ReplayService> service);
  ~ShmServer();

  const std::string& socket_name() const { return socket_name_; }

  // Ends every connection with UNAVAILABLE. Idempotent.
  void Stop();

 private:
  friend class ShmSession;

  ShmServer(std::shared_ptr<service::ReplayService> service, std::string socket_name,
            shm::Socket listener, shm::UniqueFd epoll, shm::UniqueFd wakeup, shm::UniqueFd spare);

  void Work();
  void AcceptAll();
  // Turns away a client that there is no descriptor for.
  void TurnAway();

  // For sessions. Has `session` run by a thread: as soon as its socket takes something, or when
  // there is something to read, or at the connection's end.
  void Arm(const ShmSession& session, bool when_writable, bool when_readable);
  void Remove(uint64_t session);
  // Whether a thread may look out for work instead of sleeping; ends with EndPolling.
  bool MayPoll();
  void EndPolling() { polling_.fetch_sub(1, std::memory_order_relaxed); }

  const std::shared_ptr<service::ReplayService> service_;
  const std::string socket_name_;
  const shm::Socket listener_;
  const shm::UniqueFd epoll_;
  const shm::UniqueFd wakeup_;  // Readable once the server stops.
  const int num_threads_;

  std::atomic<bool> stopping_{false};
  std::atomic<int> polling_{0};
  base::Mutex mutex_;
  shm::UniqueFd spare_ ABSL_GUARDED_BY(mutex_);  // For TurnAway.
  uint64_t last_session_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<ShmSession>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace gear_reverb::server
