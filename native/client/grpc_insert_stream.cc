#include <atomic>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/client/grpc_streams.h"
#include "native/rpc/fields.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"

namespace gear_reverb::client {
namespace {

namespace field = rpc::field::insert_request;

// While a message is on its way further items gather in the next, up to about this size.
constexpr size_t kMessageBytes = size_t{1} << 20;

// A request under construction. `keep` is that of its last item.
struct Request {
  rpc::MessageWriter body;
  std::vector<uint64_t> keep;
  bool has_items = false;

  grpc::ByteBuffer Take() {
    if (has_items) body.AddPackedUint64(field::kKeepChunkKeys, keep);
    return body.TakeByteBuffer();
  }
};

class GrpcInsertStream final : public writer::InsertStream,
                               public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  GrpcInsertStream(std::shared_ptr<grpc::GenericStub> stub, rpc::Compression compression,
                   writer::InsertStreamEvents events)
      : stub_(std::move(stub)), compression_(compression), events_(std::move(events)) {
    stub_->PrepareBidiStreamingCall(&context_, rpc::method::kInsertStream, grpc::StubOptions(),
                                    this);
    AddHold();  // Writes start outside of gRPC's callbacks, until Close or the end.
    StartRead(&response_);
    StartCall();
  }

  ~GrpcInsertStream() override {
    context_.TryCancel();  // The pending read fails and so ends the call.
    base::MutexLock lock(&mutex_);
    done_changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] { return done_; });
  }

  absl::Status Send(writer::NewItem item, absl::Span<const uint64_t> keep_chunk_keys) override {
    base::MutexLock lock(&mutex_);
    if (broken_) return absl::UnavailableError("The stream to the server has ended.");
    // Not in a request before this one that has items: it would end with dropping the chunks.
    Request* request = &Tail();
    for (storage::ChunkPtr& chunk : item.trajectory->chunks()) {
      if (!sent_chunks_.insert(chunk->key()).second) continue;
      if (!request->has_items) request = &Tail();
      request->body.AddMessage(field::kChunks, rpc::EncodeChunk(chunk, compression_));
    }
    table::Item message;
    message.key = item.key;
    message.priority = item.priority;
    message.trajectory = std::move(item.trajectory);
    request->body.AddMessage(field::kItems, rpc::EncodeItem(message, item.table));
    request->has_items = true;
    request->keep.assign(keep_chunk_keys.begin(), keep_chunk_keys.end());
    sent_chunks_.clear();
    sent_chunks_.insert(keep_chunk_keys.begin(), keep_chunk_keys.end());
    WriteNextLocked();
    return absl::OkStatus();
  }

  void Close() override {
    base::MutexLock lock(&mutex_);
    closing_ = true;
    WriteNextLocked();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        base::MutexLock lock(&mutex_);
        broken_ = true;
      }
      ReleaseHold();  // OnDone follows.
      return;
    }
    absl::StatusOr<std::vector<uint64_t>> keys = ReadKeys();
    if (!keys.ok()) {
      // Not a server of this protocol. The next read fails and so ends the call.
      context_.TryCancel();
      StartRead(&response_);
      return;
    }
    response_.Clear();
    events_.on_confirmed(*keys);
    StartRead(&response_);
  }

  void OnWriteDone(bool ok) override {
    base::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    WriteNextLocked();
  }

  void OnDone(const grpc::Status& grpc_status) override {
    absl::Status status = rpc::FromGrpc(grpc_status);
    {
      base::MutexLock lock(&mutex_);
      broken_ = true;
      if (status.ok() && !closing_) {
        status = absl::UnavailableError("The server ended the stream.");
      }
    }
    events_.on_ended(std::move(status));
    base::MutexLock lock(&mutex_);
    done_ = true;
    done_changed_.NotifyAll();
  }

 private:
  absl::StatusOr<std::vector<uint64_t>> ReadKeys() {
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(response_));
    return rpc::DecodeInsertResponse(message.view());
  }

  // The last request, or a new one if it is large enough.
  Request& Tail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (queue_.empty() || queue_.back().body.size() >= kMessageBytes) queue_.emplace_back();
    return queue_.back();
  }

  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || broken_) return;
    if (!queue_.empty()) {
      request_ = queue_.front().Take();
      queue_.pop_front();
      writing_ = true;
      StartWrite(&request_);
    } else if (closing_ && !writes_done_) {
      writes_done_ = true;
      StartWritesDone();
      ReleaseHold();
    }
  }

  // gRPC allows one release per hold.
  void ReleaseHold() {
    if (!released_.exchange(true)) RemoveHold();
  }

  const std::shared_ptr<grpc::GenericStub> stub_;
  const rpc::Compression compression_;
  const writer::InsertStreamEvents events_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, response_;
  std::atomic<bool> released_{false};

  base::Mutex mutex_;
  base::CondVar done_changed_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  // What the server holds once it has handled everything in the queue.
  absl::flat_hash_set<uint64_t> sent_chunks_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool writes_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<writer::InsertStream> NewGrpcInsertStream(std::shared_ptr<grpc::GenericStub> stub,
                                                          rpc::Compression compression,
                                                          writer::InsertStreamEvents events) {
  return std::make_unique<GrpcInsertStream>(std::move(stub), compression, std::move(events));
}

}  // namespace gear_reverb::client
