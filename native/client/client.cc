#include "native/client/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "native/base/log.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/client/inproc_connection.h"
#include "native/client/shm_connection.h"
#include "native/rpc/signature_codec.h"
#include "native/rpc/table_info_codec.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {
namespace {

constexpr absl::Duration kHelloTimeout = absl::Seconds(2);
// Of a writer that opens its stream anew.
constexpr absl::Duration kReopenTimeout = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Client::GetConnection(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  GR_ASSIGN_OR_RETURN(const DataPlane plane, plane_);
  if (plane == DataPlane::kGrpc) return grpc_;
  const bool forced = plane != DataPlane::kAuto;
  const uint64_t services_seen = service::LocalServicesSeen();
  {
    base::MutexLock lock(&mutex_);
    if (local_ != nullptr && local_->usable()) return local_;
    if (const auto* shared = dynamic_cast<ShmConnection*>(local_.get())) {
      // The server may be another now, or the same but with nothing to share.
      services_asked_for_.reset();
      if (shared->refused()) refused_token_ = shared->token();
    }
    local_ = nullptr;
    if (!forced && services_asked_for_ == services_seen) return grpc_;
  }
  const auto hello =
      grpc_->Hello(forced ? deadline : std::min(deadline, absl::Now() + kHelloTimeout));
  if (absl::IsCancelled(hello.status())) return hello.status();
  if (!hello.ok() && !absl::IsUnimplemented(hello.status())) {
    if (forced) return hello.status();
    // Not there, as the call itself will tell, or slow. The next call asks again.
    base::Log(base::LogLevel::kDebug,
              absl::StrCat(address_, " is used over gRPC for now: ", hello.status().message()));
    return grpc_;
  }
  GR_ASSIGN_OR_RETURN(std::shared_ptr<Connection> chosen, Choose(hello, plane, deadline));
  base::MutexLock lock(&mutex_);
  services_asked_for_ = services_seen;
  if (chosen == nullptr) return grpc_;
  // Another thread may have been here at the same time.
  if (local_ == nullptr || !local_->usable()) local_ = std::move(chosen);
  return local_;
}

absl::StatusOr<std::shared_ptr<Connection>> Client::Choose(
    const absl::StatusOr<rpc::HelloResponse>& hello, DataPlane plane, absl::Time deadline) {
  const auto cannot = [&](absl::string_view why) -> absl::StatusOr<std::shared_ptr<Connection>> {
    if (plane == DataPlane::kAuto) {
      base::Log(base::LogLevel::kDebug, absl::StrCat(address_, " is used over gRPC: ", why));
      return nullptr;
    }
    return base::FailedPrecondition(
        kDataPlaneVariable, plane == DataPlane::kInProcess ? "=in-process" : "=shared-memory",
        " cannot be had: ", why);
  };
  if (plane != DataPlane::kSharedMemory) {
    std::shared_ptr<service::ReplayService> service;
    if (hello.ok()) service = service::FindLocalService(hello->token);
    if (service != nullptr) return std::make_shared<InprocConnection>(std::move(service));
    if (plane == DataPlane::kInProcess) {
      return cannot(absl::StrCat("the server at ", address_, " is not in this process."));
    }
  }
  if (!hello.ok() || hello->socket_name.empty()) {
    return cannot(absl::StrCat("the server at ", address_, " does not offer it."));
  }
  const bool forced = plane == DataPlane::kSharedMemory;
  {
    base::MutexLock lock(&mutex_);
    if (!forced && hello->token == refused_token_) {
      return cannot("the server could not share its memory before.");
    }
  }
  absl::StatusOr<std::shared_ptr<ShmConnection>> shared =
      ShmConnection::Connect(hello->socket_name, hello->token, grpc_, forced,
                             std::min(deadline, absl::Now() + kHelloTimeout));
  if (shared.ok()) return *std::move(shared);
  if (absl::IsCancelled(shared.status())) return shared.status();
  return cannot(shared.status().message());  // Another host, another user, or no descriptors.
}

std::string Client::KnownDataPlane() {
  base::MutexLock lock(&mutex_);
  if (local_ != nullptr && local_->usable()) return local_->data_plane();
  const bool grpc = plane_.ok() && *plane_ == DataPlane::kGrpc;
  return grpc || (local_ == nullptr && services_asked_for_.has_value()) ? "grpc" : "";
}

absl::StatusOr<std::shared_ptr<writer::InsertStreamFactory>> Client::Reach() {
  // The server may be another than that of the last stream, with other ways to it.
  auto found = GetConnection(absl::Now() + kReopenTimeout);
  if (absl::IsDeadlineExceeded(found.status())) {
    return absl::UnavailableError(found.status().message());
  }
  return found;
}

std::unique_ptr<writer::InsertStream> Client::OpenInsertStream(writer::InsertStreamEvents events) {
  const uint64_t services_seen = service::LocalServicesSeen();
  std::shared_ptr<Connection> known;
  {
    base::MutexLock lock(&mutex_);
    const DataPlane plane = plane_.value_or(DataPlane::kInProcess);
    if (local_ != nullptr) {
      if (local_->usable()) known = local_;
    } else if (plane == DataPlane::kGrpc ||
               (plane == DataPlane::kAuto && services_asked_for_ == services_seen)) {
      known = grpc_;
    }
  }
  if (known != nullptr) return known->OpenInsertStream(std::move(events));
  return NewEndedInsertStream(absl::UnavailableError("The server was not asked for its ways yet."),
                              std::move(events));
}

absl::StatusOr<std::shared_ptr<const tensor::Signature>> Client::GetSignature(
    const std::string& table, absl::Time deadline) {
  for (const bool fetched : {false, true}) {
    if (fetched) GR_RETURN_IF_ERROR(FetchSignatures(deadline));
    base::MutexLock lock(&mutex_);
    const auto found = signatures_.find(table);
    if (found != signatures_.end()) return found->second;
  }
  std::vector<std::string> known;
  base::MutexLock lock(&mutex_);
  for (const auto& [name, signature] : signatures_) known.push_back(absl::StrCat("'", name, "'"));
  std::sort(known.begin(), known.end());
  return base::NotFound("Table '", table, "' could not be found. Available tables: [",
                        absl::StrJoin(known, ", "), "].");
}

absl::StatusOr<BatchPtr> Client::SampleBatch(const std::string& table, const BatchRequest& request,
                                             absl::Time deadline) {
  if (request.size < 1) {
    return base::InvalidArgument("batch_size (", request.size, ") must be >= 1.");
  }
  std::unique_ptr<BatchCollector> collector;
  {
    base::MutexLock lock(&mutex_);
    auto& idle = idle_collectors_[table];
    if (!idle.empty()) {
      collector = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (collector == nullptr) {
    CollectorOptions options;
    options.table = table;
    collector = std::make_unique<BatchCollector>(
        [this](absl::Time until) { return GetConnection(until); }, options);
  }
  absl::StatusOr<BatchPtr> batch = collector->Next(request, deadline);
  base::MutexLock lock(&mutex_);
  idle_collectors_[table].push_back(std::move(collector));
  return batch;
}

bool Client::TakesNegative(const std::string& table) {
  base::MutexLock lock(&mutex_);
  return !weighted_tables_.contains(table);
}

absl::Status Client::FetchSignatures(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, GetConnection(deadline));
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> infos, connection->ServerInfo(deadline));
  for (const std::string& info : infos) {
    GR_ASSIGN_OR_RETURN(const rpc::TableSignature table, rpc::DecodeTableSignature(info));
    std::shared_ptr<const tensor::Signature> signature;
    if (!table.signature.empty()) {
      GR_ASSIGN_OR_RETURN(tensor::Signature decoded, rpc::DecodeSignature(table.signature));
      signature = std::make_shared<const tensor::Signature>(std::move(decoded));
    }
    base::MutexLock lock(&mutex_);
    signatures_[table.name] = std::move(signature);
    if (!table.takes_negative) weighted_tables_.insert(table.name);
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::client
