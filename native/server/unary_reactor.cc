// Methods with one request and one response.
#include <functional>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "native/base/status.h"
#include "native/rpc/fields.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"
#include "native/rpc/table_info_codec.h"
#include "native/server/reactors.h"

namespace gear_reverb::server {
namespace {

using Response = absl::StatusOr<rpc::MessageWriter>;
using Handler = Response (*)(service::ReplayService& service, absl::string_view request);

Response Checkpoint(service::ReplayService& service, absl::string_view) {
  GR_ASSIGN_OR_RETURN(const std::string path, service.Checkpoint());
  rpc::MessageWriter response;
  response.AddBytes(rpc::field::checkpoint_response::kPath, path);
  return response;
}

Response MutatePriorities(service::ReplayService& service, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(const rpc::MutateRequest request, rpc::DecodeMutateRequest(bytes));
  GR_RETURN_IF_ERROR(service.MutatePriorities(request.table, request.updates, request.delete_keys));
  return rpc::MessageWriter();
}

Response Reset(service::ReplayService& service, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(const std::string table, rpc::DecodeResetRequest(bytes));
  GR_RETURN_IF_ERROR(service.Reset(table));
  return rpc::MessageWriter();
}

Response ServerInfo(service::ReplayService& service, absl::string_view) {
  std::vector<rpc::MessageWriter> tables;
  for (const auto& table : service.tables()) tables.push_back(rpc::EncodeTableInfo(table->info()));
  return rpc::EncodeServerInfo(service.tables_state_id(), std::move(tables));
}

// Address 0: there is no memory to be had by address, so the client uses the streams.
Response InitializeConnection(service::ReplayService&, absl::string_view) {
  rpc::MessageWriter response;
  response.AddInt64(rpc::field::initialize_response::kAddress, 0);
  return response;
}

Response Hello(service::ReplayService& service, absl::string_view) {
  rpc::MessageWriter response;
  response.AddBytes(rpc::field::hello_response::kToken, service.token());
  response.AddUint64(rpc::field::hello_response::kVersion, 1);
  return response;
}

Handler FindHandler(const std::string& method) {
  static const auto* const handlers = new absl::flat_hash_map<std::string, Handler>{
      {rpc::method::kCheckpoint, Checkpoint},
      {rpc::method::kMutatePriorities, MutatePriorities},
      {rpc::method::kReset, Reset},
      {rpc::method::kServerInfo, ServerInfo},
      {rpc::method::kInitializeConnection, InitializeConnection},
      {rpc::method::kHello, Hello},
  };
  const auto found = handlers->find(method);
  return found == handlers->end() ? nullptr : found->second;
}

class UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryReactor(ServicePtr service, OpenCalls* calls, Handler handler)
      : ticket_(calls->Enter()), service_(std::move(service)), handler_(handler) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "No request."));
    // A checkpoint writes files: it must not hold up one of gRPC's threads.
    if (handler_ == Checkpoint) {
      std::thread([this] { Answer(); }).detach();
    } else {
      Answer();
    }
  }

  void OnDone() override { delete this; }

 private:
  void Answer() {
    Response response = Handle();
    if (!response.ok()) return Finish(rpc::ToGrpc(response.status()));
    response_ = response->TakeByteBuffer();
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  Response Handle() {
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(request_));
    return handler_(*service_, message.view());
  }

  const OpenCalls::Ticket ticket_;
  const ServicePtr service_;
  const Handler handler_;
  grpc::ByteBuffer request_, response_;
};

class FailingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit FailingReactor(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* NewUnaryReactor(ServicePtr service, OpenCalls* calls,
                                                const std::string& method) {
  const Handler handler = FindHandler(method);
  if (handler == nullptr) return nullptr;
  return new UnaryReactor(std::move(service), calls, handler);
}

grpc::ServerGenericBidiReactor* NewFailingReactor(grpc::Status status) {
  return new FailingReactor(std::move(status));
}

}  // namespace gear_reverb::server
