#include "native/client/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/client/inproc_connection.h"
#include "native/rpc/signature_codec.h"
#include "native/rpc/table_info_codec.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {
namespace {

constexpr absl::Duration kHelloTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Client::GetConnection(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  const uint64_t services_seen = service::LocalServicesSeen();
  {
    base::MutexLock lock(&mutex_);
    if (local_ != nullptr && local_->usable()) return local_;
    local_ = nullptr;
    if (services_asked_for_ == services_seen) return grpc_;
  }
  const auto token = grpc_->Hello(std::min(deadline, absl::Now() + kHelloTimeout));
  if (absl::IsCancelled(token.status())) return token.status();
  if (!token.ok() && !absl::IsUnimplemented(token.status())) {
    return grpc_;  // Not there, as the call itself will tell.
  }
  std::shared_ptr<service::ReplayService> service;
  if (token.ok()) service = service::FindLocalService(*token);
  base::MutexLock lock(&mutex_);
  services_asked_for_ = services_seen;
  if (service == nullptr) return grpc_;
  local_ = std::make_shared<InprocConnection>(std::move(service));
  return local_;
}

std::unique_ptr<writer::InsertStream> Client::OpenInsertStream(writer::InsertStreamEvents events) {
  std::shared_ptr<Connection> connection;
  {
    base::MutexLock lock(&mutex_);
    connection = local_;
  }
  if (connection == nullptr || !connection->usable()) connection = grpc_;
  return connection->OpenInsertStream(std::move(events));
}

absl::StatusOr<std::shared_ptr<const tensor::Signature>> Client::GetSignature(
    const std::string& table) {
  for (const bool fetched : {false, true}) {
    if (fetched) GR_RETURN_IF_ERROR(FetchSignatures());
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

absl::Status Client::FetchSignatures() {
  GR_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, GetConnection());
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> infos,
                      connection->ServerInfo(absl::InfiniteFuture()));
  for (const std::string& info : infos) {
    GR_ASSIGN_OR_RETURN(const rpc::TableSignature table, rpc::DecodeTableSignature(info));
    std::shared_ptr<const tensor::Signature> signature;
    if (!table.signature.empty()) {
      GR_ASSIGN_OR_RETURN(tensor::Signature decoded, rpc::DecodeSignature(table.signature));
      signature = std::make_shared<const tensor::Signature>(std::move(decoded));
    }
    base::MutexLock lock(&mutex_);
    signatures_[table.name] = std::move(signature);
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::client
