#include <atomic>
#include <deque>
#include <utility>

#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/client/grpc_streams.h"
#include "native/client/sample_decoder.h"
#include "native/client/sample_queue.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"

namespace gear_reverb::client {
namespace {

class GrpcSampleStream final : public SampleStream,
                               public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  GrpcSampleStream(std::shared_ptr<grpc::GenericStub> stub, const std::string& table,
                   absl::Duration timeout)
      : stub_(std::move(stub)), table_(table), timeout_(timeout) {
    stub_->PrepareBidiStreamingCall(&context_, rpc::method::kSampleStream, grpc::StubOptions(),
                                    this);
    AddHold();  // Requests are written outside of gRPC's callbacks.
    StartRead(&response_);
    StartCall();
  }

  ~GrpcSampleStream() override {
    context_.TryCancel();  // The pending read fails and so ends the call.
    base::MutexLock lock(&mutex_);
    done_changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] { return done_; });
  }

  void Request(int64_t n) override {
    base::MutexLock lock(&mutex_);
    to_request_ += n;
    WriteNextLocked();
  }

  absl::StatusOr<std::optional<table::SampledItem>> Next(absl::Time wait_until) override {
    return queue_.Pop(wait_until);
  }
  absl::Time last_heard() const override {
    return absl::FromUnixNanos(last_heard_.load(std::memory_order_relaxed));
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      absl::Status status = ReadSamples();
      response_.Clear();
      if (!status.ok()) {
        queue_.End(std::move(status));
        context_.TryCancel();
      }
      StartRead(&response_);
      return;
    }
    {
      base::MutexLock lock(&mutex_);
      broken_ = true;
    }
    if (!released_.exchange(true)) RemoveHold();  // OnDone follows.
  }

  void OnWriteDone(bool ok) override {
    base::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    WriteNextLocked();
  }

  void OnDone(const grpc::Status& grpc_status) override {
    absl::Status status = rpc::FromGrpc(grpc_status);
    if (status.ok()) status = absl::UnavailableError("The server ended the stream.");
    queue_.End(std::move(status));
    base::MutexLock lock(&mutex_);
    done_ = true;
    done_changed_.NotifyAll();
  }

 private:
  absl::Status ReadSamples() {
    last_heard_.store(absl::ToUnixNanos(absl::Now()), std::memory_order_relaxed);
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(response_));
    GR_ASSIGN_OR_RETURN(std::vector<table::SampledItem> samples, decoder_.Decode(message.view()));
    for (table::SampledItem& sample : samples) queue_.Push(std::move(sample));
    return absl::OkStatus();
  }

  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || broken_ || to_request_ == 0) return;
    request_ = rpc::EncodeSampleRequest({table_, to_request_, timeout_}).TakeByteBuffer();
    to_request_ = 0;
    writing_ = true;
    StartWrite(&request_);
  }

  const std::shared_ptr<grpc::GenericStub> stub_;
  const std::string table_;
  const absl::Duration timeout_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, response_;
  SampleDecoder decoder_;  // Used by OnReadDone alone.
  SampleQueue queue_;
  std::atomic<bool> released_{false};
  std::atomic<int64_t> last_heard_{0};  // Since 1970, in ns.

  base::Mutex mutex_;
  base::CondVar done_changed_;
  int64_t to_request_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<SampleStream> NewGrpcSampleStream(std::shared_ptr<grpc::GenericStub> stub,
                                                  const std::string& table,
                                                  absl::Duration rate_limiter_timeout) {
  return std::make_unique<GrpcSampleStream>(std::move(stub), table, rate_limiter_timeout);
}

}  // namespace gear_reverb::client
