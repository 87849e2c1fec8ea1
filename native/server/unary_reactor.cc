// Methods with one request and one response.
#include <atomic>
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
#include "native/server/without_throwing.h"

namespace gear_reverb::server {
namespace {

using Response = absl::StatusOr<rpc::MessageWriter>;
struct Host {
  service::ReplayService& service;
  const std::string& socket_name;
};
using Handler = Response (*)(Host host, absl::string_view request);

Response Checkpoint(Host host, absl::string_view) {
  GR_ASSIGN_OR_RETURN(const std::string path, host.service.Checkpoint());
  rpc::MessageWriter response;
  response.AddBytes(rpc::field::checkpoint_response::kPath, path);
  return response;
}

Response MutatePriorities(Host host, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(const rpc::MutateRequest request, rpc::DecodeMutateRequest(bytes));
  GR_RETURN_IF_ERROR(
      host.service.MutatePriorities(request.table, request.updates, request.delete_keys));
  return rpc::MessageWriter();
}

Response Reset(Host host, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(const std::string table, rpc::DecodeResetRequest(bytes));
  GR_RETURN_IF_ERROR(host.service.Reset(table));
  return rpc::MessageWriter();
}

Response ReportUnused(Host host, absl::string_view bytes) {
  GR_ASSIGN_OR_RETURN(const rpc::ReportUnusedRequest request,
                      rpc::DecodeReportUnusedRequest(bytes));
  GR_RETURN_IF_ERROR(host.service.ReportUnused(request.table, request.count));
  return rpc::MessageWriter();
}

Response ServerInfo(Host host, absl::string_view) {
  std::vector<rpc::MessageWriter> tables;
  for (const auto& table : host.service.tables())
    tables.push_back(rpc::EncodeTableInfo(table->info()));
  return rpc::EncodeServerInfo(host.service.tables_state_id(), std::move(tables));
}

// Address 0: there is no memory to be had by address, so the client uses the streams.
Response InitializeConnection(Host, absl::string_view) {
  rpc::MessageWriter response;
  response.AddInt64(rpc::field::initialize_response::kAddress, 0);
  return response;
}

Response Hello(Host host, absl::string_view) {
  return rpc::EncodeHelloResponse({host.service.token(), host.socket_name});
}

Handler FindHandler(const std::string& method) {
  static const auto* const handlers = new absl::flat_hash_map<std::string, Handler>{
      {rpc::method::kCheckpoint, Checkpoint},
      {rpc::method::kMutatePriorities, MutatePriorities},
      {rpc::method::kReset, Reset},
      {rpc::method::kServerInfo, ServerInfo},
      {rpc::method::kInitializeConnection, InitializeConnection},
      {rpc::method::kHello, Hello},
      {rpc::method::kReportUnused, ReportUnused},
  };
  const auto found = handlers->find(method);
  return found == handlers->end() ? nullptr : found->second;
}

// Each has a thread, which waits for the one before it.
constexpr int kMostCheckpoints = 16;
std::atomic<int> checkpoints{0};

class UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryReactor(ServicePtr service, OpenCalls* calls, Handler handler,
               const std::string& socket_name)
      : ticket_(calls->Enter()),
        service_(std::move(service)),
        handler_(handler),
        socket_name_(socket_name) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "No request."));
    if (handler_ != Checkpoint) return Answer();
    const absl::Status started = WithoutThrowing([this] { return AnswerInThread(); });
    if (!started.ok()) Finish(rpc::ToGrpc(started));
  }

  void OnDone() override { delete this; }

 private:
  // A checkpoint writes files: it must not hold up one of gRPC's threads.
  absl::Status AnswerInThread() {
    struct Counted {
      const int before = checkpoints.fetch_add(1);
      ~Counted() { checkpoints.fetch_sub(1); }
    };
    auto counted = std::make_unique<Counted>();
    if (counted->before >= kMostCheckpoints) {
      return absl::ResourceExhaustedError("Too many checkpoints are asked for at the same time.");
    }
    std::thread([this, counted = std::move(counted)]() mutable {
      const std::unique_ptr<Counted> until_done = std::move(counted);
      Answer();
    }).detach();
    return absl::OkStatus();
  }

  void Answer() {
    Response response = WithoutThrowing([this] { return Handle(); });
    if (!response.ok()) return Finish(rpc::ToGrpc(response.status()));
    response_ = response->TakeByteBuffer();
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  Response Handle() {
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(request_));
    return handler_({*service_, socket_name_}, message.view());
  }

  const OpenCalls::Ticket ticket_;
  const ServicePtr service_;
  const Handler handler_;
  const std::string& socket_name_;
  grpc::ByteBuffer request_, response_;
};

class FailingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit FailingReactor(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* NewUnaryReactor(ServicePtr service, OpenCalls* calls,
                                                const std::string& method,
                                                const std::string& socket_name) {
  const Handler handler = FindHandler(method);
  if (handler == nullptr) return nullptr;
  return new UnaryReactor(std::move(service), calls, handler, socket_name);
}

grpc::ServerGenericBidiReactor* NewFailingReactor(grpc::Status status) {
  return new FailingReactor(std::move(status));
}

}  // namespace gear_reverb::server
