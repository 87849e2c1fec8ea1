// One connection of a ShmServer, from the client's greeting to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/server/shm_server.h"
#include "native/shm/frames.h"

namespace gear_reverb::server {

// What a connection turns out to be for. OnMessage and Work are called by one thread at a time.
class ShmRole {
 public:
  virtual ~ShmRole() = default;
  // An error ends the session.
  virtual absl::Status OnMessage(const shm::Frame& frame) = 0;
  // Does what there is to do, for a bounded time; true if there is more to do.
  virtual absl::StatusOr<bool> Work() = 0;
  // The session has ended, in whatever thread: nothing is to be called back for it.
  virtual void OnEnded() {}
  // Whether the client may be reading memory that this keeps for it.
  virtual bool Lends() { return false; }
};

// Thread-safe but for Run's callees. Held by the server until its end, and beyond while the client
// may be reading.
class ShmSession : public std::enable_shared_from_this<ShmSession> {
 public:
  ShmSession(ShmServer* server, uint64_t id, std::shared_ptr<service::ReplayService> service,
             shm::Socket socket);

  uint64_t id() const { return id_; }
  int fd() const { return socket_.fd(); }

  // Serves the connection: by a thread that an event has told of it.
  void Run();
  // Has a thread call Run soon.
  void Schedule();

  // Sends now what the socket takes, the rest when it can. False after the end.
  bool Send(std::string frame, shm::UniqueFd fd = {});
  // Whether the client is slow to read: then nothing more should be made for it, and Run comes
  // again when it has read.
  bool congested();

  // Tells the client `status` and ends. Idempotent.
  void End(const absl::Status& status);
  // The same, and that memory cannot be shared with it: it should take another way.
  void Refuse(const absl::Status& status);
  bool ended();

  // Between the two a thread may poll memory for work instead of sleeping.
  bool MayPoll() { return server_->MayPoll(); }
  void EndPolling() { server_->EndPolling(); }

 private:
  absl::StatusOr<bool> RunRole();
  void EndWith(std::string last_frame);
  absl::Status OnHello(const shm::Frame& frame);
  void ArmLocked(bool at_once) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepWhileLending();

  ShmServer* const server_;  // Used until the end only.
  const uint64_t id_;
  const std::shared_ptr<service::ReplayService> service_;
  const shm::Socket socket_;
  // Of the thread that runs the session.
  shm::FrameReader reader_;
  std::vector<shm::UniqueFd> fds_;

  base::Mutex mutex_;
  std::unique_ptr<ShmRole> role_;  // Set once, by the greeting; then read by all.
  shm::Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool run_again_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

std::string StatusFrame(shm::MessageType type, const absl::Status& status);
// What a client is told where the server's own memory is used up.
absl::Status OutOfMemory();

// The two roles. `session` outlives them. INVALID_ARGUMENT if `ring` is none.
absl::StatusOr<std::unique_ptr<ShmRole>> NewShmInsertRole(
    ShmSession* session, std::shared_ptr<service::ReplayService> service, shm::UniqueFd ring);
std::unique_ptr<ShmRole> NewShmControlRole(ShmSession* session,
                                           std::shared_ptr<service::ReplayService> service);

}  // namespace gear_reverb::server
