#include "native/server/shm_session.h"

#include <new>
#include <utility>

#include "native/base/status.h"
#include "native/base/timer.h"
#include "native/shm/handshake.h"

namespace gear_reverb::server {
namespace {

// How often to look whether a client still reads what it was lent by a server that has stopped.
constexpr absl::Duration kLookAfterLoans = absl::Milliseconds(100);
// After so many another session has its turn.
constexpr int kReceivesATurn = 64;
// The greeting is short, and more is not believed before it.
constexpr size_t kMaxHelloBytes = 4096;

}  // namespace

std::string StatusFrame(shm::MessageType type, const absl::Status& status) {
  return shm::MakeFrame(type, shm::EncodeStatus(status));
}

absl::Status OutOfMemory() { return absl::ResourceExhaustedError("The server is out of memory."); }

ShmSession::ShmSession(ShmServer* server, uint64_t id,
                       std::shared_ptr<service::ReplayService> service, shm::Socket socket)
    : server_(server), id_(id), service_(std::move(service)), socket_(std::move(socket)) {}

void ShmSession::Run() {
  {
    base::MutexLock lock(&mutex_);
    if (ended_) return;
    if (running_) {
      run_again_ = true;
      return;
    }
    running_ = true;
    run_again_ = false;
  }
  absl::StatusOr<bool> more;
  try {
    more = RunRole();
  } catch (const std::bad_alloc&) {
    more = OutOfMemory();
  }
  if (!more.ok()) End(more.status());
  base::MutexLock lock(&mutex_);
  running_ = false;
  if (!ended_) ArmLocked((more.ok() && *more) || run_again_);
}

void ShmSession::Schedule() {
  base::MutexLock lock(&mutex_);
  if (ended_) return;
  if (running_) {
    run_again_ = true;
  } else {
    ArmLocked(true);
  }
}

void ShmSession::ArmLocked(bool at_once) {
  // A client that is slow to read is not read from.
  server_->Arm(*this, at_once || !outbox_.empty(), outbox_.empty());
}

absl::StatusOr<bool> ShmSession::RunRole() {
  absl::Status flushed;
  {
    base::MutexLock lock(&mutex_);
    flushed = outbox_.Flush(socket_);
    if (flushed.ok() && !outbox_.empty()) {
      return socket_.PeerIsThere() ? absl::StatusOr<bool>(false)
                                   : absl::CancelledError("The client left.");
    }
  }
  if (absl::IsResourceExhausted(flushed)) Refuse(flushed);
  GR_RETURN_IF_ERROR(flushed);
  int receives = 0;
  for (; receives < kReceivesATurn && !congested(); ++receives) {
    GR_ASSIGN_OR_RETURN(const bool received,
                        reader_.Receive(socket_, role_ == nullptr ? &fds_ : nullptr));
    if (!received) break;
    if (fds_.size() > 1) return base::InvalidArgument("Too many descriptors.");
    while (true) {
      GR_ASSIGN_OR_RETURN(const auto frame,
                          reader_.Next(role_ == nullptr ? kMaxHelloBytes : shm::kMaxBodyBytes));
      if (!frame.has_value()) break;
      GR_RETURN_IF_ERROR(role_ == nullptr ? OnHello(*frame) : role_->OnMessage(*frame));
    }
  }
  if (role_ == nullptr) return false;
  GR_ASSIGN_OR_RETURN(const bool more, role_->Work());
  return more || receives == kReceivesATurn;
}

absl::Status ShmSession::OnHello(const shm::Frame& frame) {
  GR_ASSIGN_OR_RETURN(const shm::Role role, shm::CheckHello(frame, service_->token()));
  std::unique_ptr<ShmRole> made;
  if (role == shm::Role::kInsert) {
    if (fds_.size() != 1) return base::InvalidArgument("An insert stream comes with one ring.");
    GR_ASSIGN_OR_RETURN(made, NewShmInsertRole(this, service_, std::move(fds_[0])));
  } else {
    made = NewShmControlRole(this, service_);
  }
  fds_.clear();
  {
    base::MutexLock lock(&mutex_);
    role_ = std::move(made);
    if (ended_) role_->OnEnded();
  }
  Send(shm::MakeWelcome(shm::kKeepsMemory));
  return absl::OkStatus();
}

bool ShmSession::Send(std::string frame, shm::UniqueFd fd) {
  absl::Status status;
  {
    base::MutexLock lock(&mutex_);
    if (ended_) return false;
    status = outbox_.Send(socket_, std::move(frame), std::move(fd));
    if (!absl::IsResourceExhausted(status)) {
      // A peer that has gone is noticed by whoever reads next.
      if (!outbox_.empty() && !running_) ArmLocked(false);
      return true;
    }
  }
  Refuse(status);  // A descriptor, of this frame or an earlier one, could not be passed.
  return false;
}

bool ShmSession::congested() {
  base::MutexLock lock(&mutex_);
  if (outbox_.empty()) return false;
  // Work was left undone for it: also if another thread empties it before this one is at its end.
  run_again_ = true;
  return true;
}

bool ShmSession::ended() {
  base::MutexLock lock(&mutex_);
  return ended_;
}

void ShmSession::Refuse(const absl::Status& status) {
  EndWith(StatusFrame(shm::MessageType::kRefused, status));
}

void ShmSession::End(const absl::Status& status) {
  EndWith(StatusFrame(shm::MessageType::kEnd, status));
}

void ShmSession::EndWith(std::string last_frame) {
  const std::shared_ptr<ShmSession> self = shared_from_this();
  ShmRole* role;
  {
    base::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    outbox_.Send(socket_, std::move(last_frame)).IgnoreError();  // As far as the client reads.
    role = role_.get();
    server_->Remove(id_);  // Before another thread can find the end and destroy the server.
  }
  if (role != nullptr) {
    role->OnEnded();
    if (role->Lends()) KeepWhileLending();
  }
}

// The client may read until it closes its end; what it reads must stay as it is until then.
void ShmSession::KeepWhileLending() {
  if (!socket_.PeerIsThere()) return;
  base::Timer::Get().Schedule(absl::Now() + kLookAfterLoans,
                              [self = shared_from_this()] { self->KeepWhileLending(); });
}

}  // namespace gear_reverb::server
