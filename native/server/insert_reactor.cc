// InsertStream: chunks and items in, keys of inserted items out.
#include <memory>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"
#include "native/server/insert_request.h"
#include "native/server/limits.h"
#include "native/server/reactors.h"
#include "native/server/without_throwing.h"
#include "native/service/insert_session.h"

namespace gear_reverb::server {
namespace {

// gRPC calls OnReadDone and OnWriteDone one at a time each; the tables confirm from any thread.
class InsertReactor final : public grpc::ServerGenericBidiReactor,
                            public OpenStream,
                            public std::enable_shared_from_this<InsertReactor> {
 public:
  InsertReactor(ServicePtr service, OpenCalls* calls)
      : ticket_(calls->Enter()), session_(std::move(service)) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      base::MutexLock lock(&mutex_);
      read_closed_ = true;
      AdvanceLocked();
      return;
    }
    absl::Status status = WithoutThrowing([this] { return Handle(); });
    request_.Clear();
    base::MutexLock lock(&mutex_);
    if (!status.ok()) {
      FailLocked(std::move(status));
    } else if (pending_items_ < kMaxPendingItems) {
      if (!finishing_) StartRead(&request_);
    } else {
      read_paused_ = true;
    }
  }

  void OnWriteDone(bool ok) override {
    base::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) FailLocked(absl::CancelledError("The client has gone."));
    AdvanceLocked();
  }

  void OnCancel() override {
    base::MutexLock lock(&mutex_);
    FailLocked(absl::CancelledError("The client has gone."));
  }

  void OnDone() override { self_.reset(); }

  void EndForStop() override {
    base::MutexLock lock(&mutex_);
    FailLocked(absl::UnavailableError("The server has been stopped."));
  }

 private:
  absl::Status Handle() {
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(request_));
    GR_ASSIGN_OR_RETURN(auto items, ReadInsertRequest(message.view(), session_));
    if (items.empty()) return absl::OkStatus();
    for (service::InsertSession::NewItem& item : items) {
      const uint64_t key = item.insertion.item.key;
      item.insertion.done = [weak = weak_from_this(), key](absl::Status status) {
        if (auto self = weak.lock()) self->OnItemDone(key, std::move(status));
      };
    }
    {
      base::MutexLock lock(&mutex_);
      pending_items_ += items.size();
    }
    session_.AddItems(std::move(items));
    return absl::OkStatus();
  }

  void OnItemDone(uint64_t key, absl::Status status) {
    base::MutexLock lock(&mutex_);
    --pending_items_;
    if (!status.ok()) {
      FailLocked(session_.service().Explain(std::move(status)));
      return;
    }
    confirmed_.push_back(key);
    if (read_paused_ && pending_items_ <= kMaxPendingItems / 2 && !finishing_) {
      read_paused_ = false;
      StartRead(&request_);
    }
    AdvanceLocked();
  }

  void FailLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finishing_) return;
    finishing_ = true;
    status_ = std::move(status);
    AdvanceLocked();
  }

  // Does what can be done next: write confirmations, or finish.
  void AdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!finishing_ && !confirmed_.empty()) {
      response_ = rpc::EncodeInsertResponse(confirmed_).TakeByteBuffer();
      confirmed_.clear();
      writing_ = true;
      StartWrite(&response_);
      return;
    }
    if (!finishing_ && read_closed_ && pending_items_ == 0) finishing_ = true;
    if (finishing_) {
      finished_ = true;
      Finish(rpc::ToGrpc(status_));
    }
  }

  const OpenCalls::Ticket ticket_;
  std::shared_ptr<InsertReactor> self_;
  service::InsertSession session_;  // Used by OnReadDone alone.
  grpc::ByteBuffer request_, response_;

  base::Mutex mutex_;
  int pending_items_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> confirmed_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool read_paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // No more reads or writes.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;   // Finish has been called.
};

}  // namespace

grpc::ServerGenericBidiReactor* NewInsertReactor(ServicePtr service, OpenCalls* calls) {
  auto reactor = std::make_shared<InsertReactor>(std::move(service), calls);
  reactor->Start();
  calls->AddStream(reactor);
  return reactor.get();
}

}  // namespace gear_reverb::server
