#include "native/client/shm_control.h"

#include <algorithm>
#include <utility>

#include "native/base/interrupt.h"
#include "native/base/status.h"
#include "native/base/timer.h"
#include "native/client/fork_guard.h"
#include "native/client/shm_limits.h"
#include "native/shm/encoding.h"
#include "native/shm/handshake.h"

namespace gear_reverb::client {
namespace {

using shm::MessageType;

// A server that takes nothing for so long is taken for dead.
constexpr absl::Duration kSendTimeout = absl::Seconds(20);
// Released leases travel with the next request, or by themselves after this.
constexpr absl::Duration kReleaseAfter = absl::Milliseconds(10);

absl::Status Interrupted() { return absl::CancelledError("Interrupted."); }

}  // namespace

absl::StatusOr<shm::Socket> ShmPeer::Open(shm::Role role, int ring) const {
  GR_RETURN_IF_ERROR(CheckNotForked());
  GR_ASSIGN_OR_RETURN(shm::Socket socket, shm::Socket::Connect(socket_name));
  const std::string hello = shm::MakeHello(role, token);
  GR_ASSIGN_OR_RETURN(const size_t sent, socket.Send(hello, ring));
  // A new socket has room for so little.
  if (sent != hello.size()) return absl::UnavailableError("The greeting was not taken.");
  return socket;
}

absl::Status ShmPeer::Refuse(const std::string& why) {
  refused.store(true);
  if (!forced) return absl::UnavailableError(why);
  return base::FailedPrecondition("GEAR_REVERB_DATA_PLANE=shared-memory cannot be had: ", why);
}

// Says, when the last copy goes, that the server may have its memory back.
class ShmControl::Lease {
 public:
  Lease(std::shared_ptr<ShmControl> control, uint64_t id,
        std::vector<std::shared_ptr<const shm::MappedSegment>> segments)
      : control_(std::move(control)), id_(id), segments_(std::move(segments)) {}
  ~Lease() { control_->Release(id_); }

 private:
  const std::shared_ptr<ShmControl> control_;
  const uint64_t id_;
  const std::vector<std::shared_ptr<const shm::MappedSegment>> segments_;
};

absl::StatusOr<std::shared_ptr<ShmControl>> ShmControl::Open(std::shared_ptr<ShmPeer> peer,
                                                             absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(shm::Socket socket, peer->Open(shm::Role::kControl));
  std::shared_ptr<ShmControl> control(new ShmControl(std::move(peer), std::move(socket)));
  GR_ASSIGN_OR_RETURN(const auto frame, control->Receive(deadline));
  if (!frame.has_value()) return absl::UnavailableError("The server did not answer in time.");
  if (frame->type != MessageType::kWelcome) {
    return base::Internal("The server answered with ", static_cast<uint32_t>(frame->type), ".");
  }
  control->peer_->features.store(shm::DecodeWelcome(frame->body));
  return control;
}

ShmControl::~ShmControl() = default;

absl::Status ShmControl::Lost(const absl::Status& status) {
  peer_->gone.store(true);
  return absl::UnavailableError(absl::StrCat("The server has gone: ", status.message()));
}

absl::Status ShmControl::Send(std::string frame) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  base::MutexLock lock(&send_mutex_);
  absl::string_view rest = frame;
  while (true) {
    const absl::StatusOr<size_t> sent = socket_.Send(rest);
    if (!sent.ok()) return Lost(sent.status());
    rest.remove_prefix(*sent);
    if (rest.empty()) return absl::OkStatus();
    if (*sent == 0 && !socket_.WaitWritable(kSendTimeout)) {
      return Lost(absl::UnavailableError("It takes no requests."));
    }
  }
}

absl::Status ShmControl::Request(shm::DrawRequest request) {
  {
    base::MutexLock lock(&released_mutex_);
    request.released.swap(released_);
  }
  return Send(shm::MakeFrame(MessageType::kDraw, shm::EncodeDrawRequest(request)));
}

absl::StatusOr<std::optional<shm::Frame>> ShmControl::Receive(absl::Time deadline,
                                                              bool after_cancel) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  while (true) {
    while (true) {
      GR_ASSIGN_OR_RETURN(const auto frame, reader_.Next());
      if (!frame.has_value()) break;
      switch (frame->type) {
        case MessageType::kSegment: GR_RETURN_IF_ERROR(OnSegment(*frame)); continue;
        case MessageType::kGone: GR_RETURN_IF_ERROR(OnGone(*frame)); continue;
        case MessageType::kRefused:
          return peer_->Refuse(std::string(shm::DecodeStatus(frame->body).message()));
        case MessageType::kEnd: return Lost(shm::DecodeStatus(frame->body));
        default: return frame;
      }
    }
    if (cancelled_.load() && !after_cancel)
      return absl::CancelledError("The stream was cancelled.");
    const absl::StatusOr<bool> received = reader_.Receive(socket_, &fds_);
    if (!received.ok()) return Lost(received.status());
    if (*received) continue;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    if (socket_.WaitReadable(std::min(left, kLookEvery))) continue;
    const base::InterruptHook hook = base::interrupt_hook.load();
    if (hook != nullptr && hook()) return Interrupted();
  }
}

absl::Status ShmControl::OnSegment(const shm::Frame& frame) {
  shm::Decoder decoder(frame.body);
  const auto id = decoder.Get<uint32_t>();
  if (!decoder.done()) return base::Internal("The server sent a malformed message.");
  // The system drops descriptors that this process has no room for.
  if (fds_.empty()) return peer_->Refuse("A descriptor of the server's memory did not arrive.");
  const shm::UniqueFd fd = std::move(fds_.front());
  fds_.erase(fds_.begin());
  const absl::Status added = peer_->segments.Add(id, fd);
  return added.ok() ? added : peer_->Refuse(std::string(added.message()));
}

absl::Status ShmControl::OnGone(const shm::Frame& frame) {
  shm::Decoder decoder(frame.body);
  while (decoder.ok() && !decoder.done()) peer_->segments.Forget(decoder.Get<uint32_t>());
  return decoder.ok() ? absl::OkStatus() : base::Internal("The server sent a malformed message.");
}

absl::StatusOr<std::optional<ShmControl::Answer>> ShmControl::Next(absl::Time wait_until) {
  GR_ASSIGN_OR_RETURN(const auto frame, Receive(wait_until));
  if (!frame.has_value()) return std::nullopt;
  return ReadAnswer(*frame);
}

absl::StatusOr<std::optional<ShmControl::Answer>> ShmControl::NextAfterCancel(
    absl::Time wait_until) {
  GR_ASSIGN_OR_RETURN(const auto frame, Receive(wait_until, /*after_cancel=*/true));
  if (!frame.has_value()) return std::nullopt;
  return ReadAnswer(*frame);
}

absl::StatusOr<ShmControl::Answer> ShmControl::ReadAnswer(const shm::Frame& frame) {
  if (frame.type == MessageType::kFailed) {
    Answer answer;
    answer.failed = shm::DecodeStatus(frame.body);
    if (answer.failed.ok()) return base::Internal("The server sent a failure that is none.");
    return answer;
  }
  if (frame.type != MessageType::kDrawn) {
    return base::Internal("The server sent ", static_cast<uint32_t>(frame.type), ".");
  }
  return ReadDrawn(frame);
}

absl::StatusOr<ShmControl::Answer> ShmControl::ReadDrawn(const shm::Frame& frame) {
  absl::StatusOr<shm::Drawn> drawn = shm::DecodeDrawn(
      frame.body, [this](uint32_t segment) { return peer_->segments.Find(segment); });
  if (!drawn.ok())
    return base::Internal("What the server sent is wrong: ", drawn.status().message());
  Answer answer;
  const auto lease =
      std::make_shared<const Lease>(shared_from_this(), drawn->lease, std::move(drawn->segments));
  answer.groups = std::move(drawn->groups);
  for (batch::DrawnBatch& group : answer.groups) group.lease = lease;
  return answer;
}

absl::Status ShmControl::MutatePriorities(const std::string& table,
                                          absl::Span<const table::KeyWithPriority> updates,
                                          absl::Span<const uint64_t> delete_keys,
                                          absl::Time deadline) {
  GR_RETURN_IF_ERROR(Send(
      shm::MakeFrame(MessageType::kMutate, shm::EncodeMutateRequest(table, updates, delete_keys))));
  GR_ASSIGN_OR_RETURN(const auto frame, Receive(deadline));
  if (!frame.has_value()) return absl::DeadlineExceededError("The server did not answer in time.");
  if (frame->type != MessageType::kMutated) {
    return base::Internal("The server sent ", static_cast<uint32_t>(frame->type), ".");
  }
  return shm::DecodeStatus(frame->body);
}

absl::Status ShmControl::KeepMemory(absl::Time deadline) {
  if ((peer_->features.load() & shm::kKeepsMemory) == 0) {
    return absl::UnimplementedError("The server's version does not keep its memory for clients.");
  }
  GR_RETURN_IF_ERROR(Send(shm::MakeFrame(MessageType::kKeepMemory)));
  GR_ASSIGN_OR_RETURN(const auto frame, Receive(deadline));
  if (!frame.has_value()) return absl::UnavailableError("The server did not answer in time.");
  if (frame->type != MessageType::kMemoryKept) {
    return base::Internal("The server sent ", static_cast<uint32_t>(frame->type), ".");
  }
  return shm::DecodeStatus(frame->body);
}

void ShmControl::Cancel() {
  if (cancelled_.exchange(true)) return;
  Send(shm::MakeFrame(MessageType::kCancel)).IgnoreError();
}

void ShmControl::Release(uint64_t lease) {
  if (!CheckNotForked().ok()) return;  // It is the parent's.
  base::MutexLock lock(&released_mutex_);
  released_.push_back(lease);
  if (!std::exchange(timer_set_, true)) SetTimer();
}

void ShmControl::SetTimer() {
  base::Timer::Get().Schedule(absl::Now() + kReleaseAfter, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->SendReleased();
  });
}

void ShmControl::SendReleased() {
  std::vector<uint64_t> released;
  {
    base::MutexLock lock(&released_mutex_);
    // The timer's thread must not wait.
    if (!socket_.WaitWritable(absl::ZeroDuration())) return SetTimer();
    timer_set_ = false;
    released.swap(released_);
  }
  if (released.empty()) return;
  std::string body;
  shm::Encoder(&body).PutArray<uint64_t>(released);
  Send(shm::MakeFrame(MessageType::kRelease, body)).IgnoreError();  // Then it has none of them.
}

}  // namespace gear_reverb::client
