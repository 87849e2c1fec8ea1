#include "native/client/grpc_connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "grpcpp/grpcpp.h"
#include "native/base/interrupt.h"
#include "native/base/status.h"
#include "native/client/batch_stream_of_samples.h"
#include "native/client/fork_guard.h"
#include "native/client/grpc_streams.h"
#include "native/rpc/fields.h"
#include "native/rpc/methods.h"
#include "native/rpc/requests.h"

namespace gear_reverb::client {
namespace {

// For what nobody waits for.
constexpr absl::Duration kReportTimeout = absl::Seconds(2);

bool IsOnThisHost(const std::string& address) {
  return absl::StartsWith(address, "localhost:") || absl::StartsWith(address, "127.") ||
         absl::StartsWith(address, "[::1]") || absl::StartsWith(address, "unix:");
}

// gRPC's callback threads end with the last channel that used them, and abort the process if that
// one is released in a callback of theirs, as the end of a call can do. So a channel that goes
// nowhere, but has made a call, stays for good.
void KeepCallbackThreads() {
  static const bool kept = [] {
    struct Call {
      grpc::GenericStub stub{grpc::CreateCustomChannel("", nullptr, {})};
      grpc::ClientContext context;
      grpc::ByteBuffer request = rpc::MessageWriter().TakeByteBuffer();
      grpc::ByteBuffer response;
    };
    auto* call = new Call;
    call->stub.UnaryCall(&call->context, "/", grpc::StubOptions(), &call->request, &call->response,
                         [](grpc::Status) {});
    return true;
  }();
  (void)kept;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  NoteGrpcUse();
  KeepCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A server that comes back should be noticed soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A host that has vanished is noticed too. More often servers take for an attack by default.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Each client has its connection: two do not share one TCP stream's window.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// The result of a call that runs in gRPC's threads; shared, since a caller that is interrupted
// leaves before gRPC does.
struct PendingCall {
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  base::Mutex mutex;
  base::CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  grpc::Status status ABSL_GUARDED_BY(mutex);
};

}  // namespace

GrpcConnection::GrpcConnection(const std::string& address)
    : address_(address),
      compression_(IsOnThisHost(address) ? rpc::Compression::kLiteral : rpc::Compression::kSnappy),
      channel_(MakeChannel(address)),
      stub_(std::make_shared<grpc::GenericStub>(channel_)) {}

absl::Status GrpcConnection::WaitForConnection(absl::Time deadline) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  const bool patient = deadline == absl::InfiniteFuture();
  const absl::Time until = patient ? absl::Now() + ConnectPatience() : deadline;
  while (true) {
    const absl::Time slice_end = std::min(until, absl::Now() + absl::Milliseconds(100));
    if (channel_->WaitForConnected(absl::ToChronoTime(slice_end))) return absl::OkStatus();
    if (slice_end == until) break;
    const base::InterruptHook hook = base::interrupt_hook.load();
    if (hook != nullptr && hook()) return absl::CancelledError("Interrupted.");
  }
  const std::string text = absl::StrCat("Could not connect to the server at ", address_);
  if (!patient) return absl::DeadlineExceededError(text + ".");
  return absl::UnavailableError(absl::StrCat(text, " for ", absl::FormatDuration(ConnectPatience()),
                                             " (GEAR_REVERB_CONNECT_TIMEOUT)."));
}

absl::StatusOr<rpc::FlatMessage> GrpcConnection::Call(const char* method,
                                                      rpc::MessageWriter request,
                                                      absl::Time deadline) {
  GR_RETURN_IF_ERROR(WaitForConnection(deadline));
  auto call = std::make_shared<PendingCall>();
  call->request = request.TakeByteBuffer();
  if (deadline != absl::InfiniteFuture()) call->context.set_deadline(absl::ToChronoTime(deadline));
  stub_->UnaryCall(&call->context, method, grpc::StubOptions(), &call->request, &call->response,
                   [call](grpc::Status status) {
                     base::MutexLock lock(&call->mutex);
                     call->status = std::move(status);
                     call->done = true;
                     call->changed.NotifyAll();
                   });
  base::MutexLock lock(&call->mutex);
  // gRPC keeps the deadline; the wait itself only ends early when the program is interrupted.
  const absl::Status waited =
      base::WaitInterruptibly(call->changed, &call->mutex, absl::InfiniteFuture(),
                              [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return call->done; });
  if (!waited.ok()) {
    call->context.TryCancel();
    return waited;
  }
  if (!call->status.ok()) return rpc::FromGrpc(call->status);
  return rpc::FlatMessage::Create(call->response);
}

std::unique_ptr<writer::InsertStream> GrpcConnection::OpenInsertStream(
    writer::InsertStreamEvents events) {
  return NewGrpcInsertStream(stub_, compression_, std::move(events));
}

absl::StatusOr<std::unique_ptr<SampleStream>> GrpcConnection::OpenSampleStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  GR_RETURN_IF_ERROR(CheckNotForked());
  return NewGrpcSampleStream(stub_, table, rate_limiter_timeout);
}

absl::StatusOr<std::unique_ptr<BatchStream>> GrpcConnection::OpenBatchStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  GR_ASSIGN_OR_RETURN(auto samples, OpenSampleStream(table, rate_limiter_timeout));
  return NewBatchStreamOfSamples(std::move(samples));
}

absl::Status GrpcConnection::ReportUnused(const std::string& table, int64_t n) {
  const absl::Status status =
      Call(rpc::method::kReportUnused, rpc::EncodeReportUnusedRequest({table, n}),
           absl::Now() + kReportTimeout)
          .status();
  return absl::IsUnimplemented(status) ? absl::OkStatus() : status;  // Reverb's servers.
}

absl::Status GrpcConnection::MutatePriorities(const std::string& table,
                                              absl::Span<const table::KeyWithPriority> updates,
                                              absl::Span<const uint64_t> delete_keys,
                                              absl::Time deadline) {
  return Call(rpc::method::kMutatePriorities, rpc::EncodeMutateRequest(table, updates, delete_keys),
              deadline)
      .status();
}

absl::Status GrpcConnection::Reset(const std::string& table, absl::Time deadline) {
  return Call(rpc::method::kReset, rpc::EncodeResetRequest(table), deadline).status();
}

absl::StatusOr<std::string> GrpcConnection::Checkpoint(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const rpc::FlatMessage response,
                      Call(rpc::method::kCheckpoint, {}, deadline));
  return rpc::DecodeBytesField(response.view(), rpc::field::checkpoint_response::kPath);
}

absl::StatusOr<std::vector<std::string>> GrpcConnection::ServerInfo(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const rpc::FlatMessage response,
                      Call(rpc::method::kServerInfo, {}, deadline));
  return rpc::DecodeServerInfo(response.view());
}

absl::StatusOr<rpc::HelloResponse> GrpcConnection::Hello(absl::Time deadline) {
  GR_ASSIGN_OR_RETURN(const rpc::FlatMessage response, Call(rpc::method::kHello, {}, deadline));
  return rpc::DecodeHelloResponse(response.view());
}

}  // namespace gear_reverb::client
