#include "native/client/shm_connection.h"

#include <thread>
#include <utility>

#include "native/base/log.h"
#include "native/base/status.h"
#include "native/client/shm_streams.h"
#include "native/shm/protocol.h"

namespace gear_reverb::client {
namespace {

// A server on this host answers at once, unless it is very busy.
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(2);

void LogFallback(const char* what, const absl::Status& why) {
  base::Log(base::LogLevel::kDebug, absl::StrCat(what, " over gRPC: ", why.message()));
}

class EndedInsertStream final : public writer::InsertStream {
 public:
  EndedInsertStream(absl::Status status, writer::InsertStreamEvents events)
      : thread_([status = std::move(status), events = std::move(events)] {
          events.on_ended(status);
        }) {}
  ~EndedInsertStream() override { thread_.join(); }

  absl::Status Send(writer::NewItem, absl::Span<const uint64_t>) override {
    return absl::UnavailableError("The stream to the server has ended.");
  }
  void Close() override {}

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<writer::InsertStream> NewEndedInsertStream(absl::Status status,
                                                           writer::InsertStreamEvents events) {
  return std::make_unique<EndedInsertStream>(std::move(status), std::move(events));
}

absl::StatusOr<std::shared_ptr<ShmConnection>> ShmConnection::Connect(
    const std::string& socket_name, const std::string& token, std::shared_ptr<Connection> grpc,
    bool forced, absl::Time deadline) {
  if (!shm::Socket::IsName(socket_name)) {
    return base::InvalidArgument("The server told a socket's name that is none.");
  }
  auto peer = std::make_shared<ShmPeer>(socket_name, token, forced);
  GR_ASSIGN_OR_RETURN(auto control, ShmControl::Open(peer, deadline));
  return std::shared_ptr<ShmConnection>(
      new ShmConnection(std::move(peer), std::move(control), std::move(grpc)));
}

bool ShmConnection::usable() const {
  if (peer_->gone.load() || !first_->PeerIsThere()) return false;
  return !refused() || peer_->forced;
}

absl::StatusOr<std::shared_ptr<ShmControl>> ShmConnection::OpenControl() {
  absl::StatusOr<std::shared_ptr<ShmControl>> control =
      ShmControl::Open(peer_, absl::Now() + kWelcomeTimeout);
  if (!control.ok() && peer_->forced && usable() && !absl::IsFailedPrecondition(control.status()) &&
      !absl::IsCancelled(control.status())) {
    return peer_->Refuse(std::string(control.status().message()));
  }
  return control;
}

std::unique_ptr<writer::InsertStream> ShmConnection::OpenInsertStream(
    writer::InsertStreamEvents events) {
  auto stream = NewShmInsertStream(peer_, events);
  if (stream.ok()) return *std::move(stream);
  if (!peer_->forced) {
    LogFallback("A writer goes", stream.status());
    return grpc_->OpenInsertStream(std::move(events));
  }
  return NewEndedInsertStream(
      usable() ? peer_->Refuse(std::string(stream.status().message())) : stream.status(),
      std::move(events));
}

absl::StatusOr<std::unique_ptr<SampleStream>> ShmConnection::OpenSampleStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  absl::StatusOr<std::shared_ptr<ShmControl>> control = OpenControl();
  if (control.ok()) return NewShmSampleStream(*std::move(control), table, rate_limiter_timeout);
  if (peer_->forced || absl::IsCancelled(control.status())) return control.status();
  LogFallback("A sampler goes", control.status());
  return grpc_->OpenSampleStream(table, rate_limiter_timeout);
}

absl::StatusOr<std::unique_ptr<BatchStream>> ShmConnection::OpenBatchStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  absl::StatusOr<std::shared_ptr<ShmControl>> control = OpenControl();
  if (control.ok()) return NewShmBatchStream(*std::move(control), table, rate_limiter_timeout);
  if (peer_->forced || absl::IsCancelled(control.status())) return control.status();
  LogFallback("A batch sampler goes", control.status());
  return grpc_->OpenBatchStream(table, rate_limiter_timeout);
}

absl::Status ShmConnection::InsertStacked(const StackedItems& items, absl::Time deadline,
                                          ConfirmedItems* confirmed) {
  std::unique_ptr<ShmRowSender> sender;
  {
    base::MutexLock lock(&mutex_);
    if (!idle_senders_.empty()) {
      sender = std::move(idle_senders_.back());
      idle_senders_.pop_back();
    }
  }
  if (sender == nullptr) {
    absl::StatusOr<std::unique_ptr<ShmRowSender>> opened = ShmRowSender::Open(*peer_);
    // An insert stream meets the same, and knows what to do.
    if (!opened.ok()) return absl::UnavailableError(opened.status().message());
    sender = *std::move(opened);
  }
  GR_RETURN_IF_ERROR(sender->Insert(items, deadline, confirmed));
  base::MutexLock lock(&mutex_);
  idle_senders_.push_back(std::move(sender));
  return absl::OkStatus();
}

absl::Status ShmConnection::MutatePriorities(const std::string& table,
                                             absl::Span<const table::KeyWithPriority> updates,
                                             absl::Span<const uint64_t> delete_keys,
                                             absl::Time deadline) {
  const size_t bytes = updates.size() * sizeof(updates[0]) + delete_keys.size() * sizeof(uint64_t);
  if (bytes > shm::kMaxBodyBytes / 2)
    return grpc_->MutatePriorities(table, updates, delete_keys, deadline);
  std::shared_ptr<ShmControl> control;
  {
    base::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      control = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (control == nullptr) {
    absl::StatusOr<std::shared_ptr<ShmControl>> opened = OpenControl();
    if (opened.ok()) control = *std::move(opened);
  }
  absl::Status status = absl::UnavailableError("");
  if (control != nullptr) status = control->MutatePriorities(table, updates, delete_keys, deadline);
  // A call that was not waited for leaves its answer behind, and a broken connection is of no use.
  const bool left = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
  if (control != nullptr && !left && usable()) {
    base::MutexLock lock(&mutex_);
    idle_.push_back(std::move(control));
  }
  // Once more does no harm: the same priorities are set, and what is deleted is deleted.
  if (absl::IsUnavailable(status))
    return grpc_->MutatePriorities(table, updates, delete_keys, deadline);
  return status;
}

absl::Status ShmConnection::ReportUnused(const std::string& table, int64_t n) {
  return grpc_->ReportUnused(table, n);
}

absl::Status ShmConnection::Reset(const std::string& table, absl::Time deadline) {
  return grpc_->Reset(table, deadline);
}

absl::StatusOr<std::string> ShmConnection::Checkpoint(absl::Time deadline) {
  return grpc_->Checkpoint(deadline);
}

absl::StatusOr<std::vector<std::string>> ShmConnection::ServerInfo(absl::Time deadline) {
  return grpc_->ServerInfo(deadline);
}

}  // namespace gear_reverb::client
