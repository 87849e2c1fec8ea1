#include "native/server/grpc_server.h"

#include <utility>

#include "absl/strings/match.h"
#include "grpcpp/grpcpp.h"
#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/memory/fork_guard.h"
#include "native/rpc/methods.h"
#include "native/server/reactors.h"
#include "native/server/shm_server.h"

namespace gear_reverb::server {
namespace {

// How long calls in progress may take to end at Stop before they are cut.
constexpr absl::Duration kDrainTime = absl::Seconds(5);

bool IsLoopback(const std::string& peer) {
  return absl::StartsWith(peer, "ipv4:127.") || absl::StartsWith(peer, "ipv6:[::1]") ||
         absl::StartsWith(peer, "ipv6:%5B::1%5D") || absl::StartsWith(peer, "unix:");
}

class Dispatcher final : public grpc::CallbackGenericService {
 public:
  explicit Dispatcher(ServicePtr service) : service_(std::move(service)) {}

  // Before the first call.
  void OfferSharedMemory(std::string socket_name) { socket_name_ = std::move(socket_name); }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (service_->stopped()) {
      return NewFailingReactor({grpc::StatusCode::UNAVAILABLE, "The server has been stopped."});
    }
    const std::string& method = context->method();
    if (method == rpc::method::kInsertStream) return NewInsertReactor(service_, &calls_);
    if (method == rpc::method::kSampleStream) {
      return NewSampleReactor(service_, &calls_, IsLoopback(context->peer()));
    }
    if (auto* reactor = NewUnaryReactor(service_, &calls_, method, socket_name_)) return reactor;
    return NewFailingReactor({grpc::StatusCode::UNIMPLEMENTED, "Unknown method " + method});
  }

  // Until no call is left, or for kDrainTime.
  void Drain() {
    calls_.EndStreams();
    calls_.WaitUntilNone(absl::Now() + kDrainTime);
  }

 private:
  const ServicePtr service_;
  std::string socket_name_;
  OpenCalls calls_;
};

}  // namespace

class GrpcServer::Impl {
 public:
  explicit Impl(ServicePtr service) : service_(std::move(service)) {}

  ~Impl() { Stop(); }

  absl::Status Start(const GrpcServerOptions& options) {
    if (options.port < 0 || options.port > 65535) {
      return base::InvalidArgument("Port ", options.port, " is not between 0 and 65535.");
    }
    if (options.shared_memory) {
      // Without it clients use gRPC.
      auto shm_server = ShmServer::Start(service_);
      if (shm_server.ok()) shm_server_ = *std::move(shm_server);
    }
    // A machine without IPv6 has only the second.
    const std::vector<std::string> addresses = options.bind_address.empty()
                                                   ? std::vector<std::string>{"[::]", "0.0.0.0"}
                                                   : std::vector<std::string>{options.bind_address};
    for (const std::string& address : addresses) {
      // gRPC takes one for one try.
      dispatcher_ = std::make_unique<Dispatcher>(service_);
      if (shm_server_ != nullptr) dispatcher_->OfferSharedMemory(shm_server_->socket_name());
      grpc::ServerBuilder builder;
      builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
      builder.SetMaxReceiveMessageSize(-1);
      builder.SetMaxSendMessageSize(-1);
      builder.AddListeningPort(absl::StrCat(address, ":", options.port),
                               grpc::InsecureServerCredentials(), &port_);
      builder.RegisterCallbackGenericService(dispatcher_.get());
      server_ = builder.BuildAndStart();
      if (server_ != nullptr && port_ != 0) return absl::OkStatus();
      server_ = nullptr;
    }
    return absl::UnavailableError(absl::StrCat("Cannot listen on port ", options.port, " of ",
                                               addresses[0], ": is it in use by another server?"));
  }

  void Stop() {
    {
      base::MutexLock lock(&mutex_);
      if (stopping_) {
        changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] { return stopped_; });
        return;
      }
      stopping_ = true;
    }
    // If it never began its tables may be another server's, which has the port.
    if (server_ != nullptr) service_->Stop();
    if (shm_server_ != nullptr) shm_server_->Stop();
    if (server_ != nullptr) {
      dispatcher_->Drain();
      // At once: an idle client may never look at its connection and see that it should go.
      server_->Shutdown(absl::ToChronoTime(absl::Now()));
      server_->Wait();
    }
    base::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  bool Wait(absl::Duration timeout) {
    base::MutexLock lock(&mutex_);
    return changed_.WaitUntil(&mutex_, absl::Now() + timeout, [this] { return stopped_; });
  }

  int port() const { return port_; }
  service::ReplayService& service() const { return *service_; }

 private:
  const ServicePtr service_;
  std::unique_ptr<Dispatcher> dispatcher_;  // Of the server.
  std::unique_ptr<ShmServer> shm_server_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;

  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Create(
    std::shared_ptr<service::ReplayService> service, const GrpcServerOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(service));
  GR_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)), generation_(memory::ForkGeneration()) {}
GrpcServer::~GrpcServer() {
  if (foreign()) (void)impl_.release();  // Its threads are the parent's.
}

bool GrpcServer::foreign() const { return memory::ForkGeneration() != generation_; }

int GrpcServer::port() const { return impl_->port(); }
service::ReplayService& GrpcServer::service() const { return impl_->service(); }
void GrpcServer::Stop() {
  if (!foreign()) impl_->Stop();
}
bool GrpcServer::Wait(absl::Duration timeout) { return impl_->Wait(timeout); }

}  // namespace gear_reverb::server
