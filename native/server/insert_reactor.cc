// InsertStream: chunks and items in, keys of inserted items out.
#include <memory>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"
#include "native/server/reactors.h"
#include "native/service/insert_session.h"

namespace gear_reverb::server {
namespace {

// Back-pressure: with this many items waiting for the rate limiter no more is read.
constexpr int kMaxPendingItems = 1000;

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
    absl::Status status = Handle();
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
    GR_ASSIGN_OR_RETURN(const rpc::InsertRequest request, rpc::DecodeInsertRequest(message.view()));
    if (request.chunks.empty() && request.items.empty()) {
      return base::InvalidArgument("InsertStreamRequest has neither chunks nor items.");
    }
    for (absl::string_view chunk_message : request.chunks) {
      GR_ASSIGN_OR_RETURN(storage::ChunkPtr chunk,
                          rpc::DecodeChunk(chunk_message, session_.service().arena()));
      session_.AddChunk(std::move(chunk));
    }
    if (request.items.empty()) return absl::OkStatus();
    // All or nothing: an item that is wrong keeps the message's others out too.
    std::vector<service::InsertSession::NewItem> items;
    items.reserve(request.items.size());
    for (absl::string_view item_message : request.items) {
      GR_ASSIGN_OR_RETURN(service::InsertSession::NewItem item, ReadItem(item_message));
      items.push_back(std::move(item));
    }
    GR_RETURN_IF_ERROR(session_.KeepOnly(request.keep_chunk_keys));
    {
      base::MutexLock lock(&mutex_);
      pending_items_ += items.size();
    }
    session_.AddItems(std::move(items));
    return absl::OkStatus();
  }

  absl::StatusOr<service::InsertSession::NewItem> ReadItem(absl::string_view item_message) {
    GR_ASSIGN_OR_RETURN(const rpc::ItemMessage message, rpc::DecodeItem(item_message));
    service::InsertSession::NewItem item;
    GR_ASSIGN_OR_RETURN(item.table, session_.FindTable(message.table));
    item.insertion.item.key = message.key;
    item.insertion.item.priority = message.priority;
    GR_ASSIGN_OR_RETURN(
        item.insertion.item.trajectory,
        rpc::ResolveTrajectory(message, [this](uint64_t key) { return session_.FindChunk(key); }));
    item.insertion.done = [weak = weak_from_this(), key = message.key](absl::Status status) {
      if (auto self = weak.lock()) self->OnItemDone(key, std::move(status));
    };
    return item;
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
  calls->AddStream(reactor);
  reactor->Start();
  return reactor.get();
}

}  // namespace gear_reverb::server
