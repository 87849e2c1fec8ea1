// SampleStream: requests for samples in, samples with their chunks out.
#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/fields.h"
#include "native/rpc/item_codec.h"
#include "native/rpc/methods.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"
#include "native/server/limits.h"
#include "native/server/reactors.h"

namespace gear_reverb::server {
namespace {

// A message is sent when it has grown to this size; one chunk is never split.
constexpr size_t kMessageBytes = size_t{1} << 20;

// Packs samples into response messages.
class ResponsePacker {
 public:
  explicit ResponsePacker(rpc::Compression compression) : compression_(compression) {}

  void Add(const table::SampledItem& sample, const std::string& table) {
    rpc::MessageWriter entry;
    entry.AddMessage(rpc::field::sample_entry::kInfo, rpc::EncodeSampleInfo(sample, table));
    if (sample.item.trajectory != nullptr) {
      for (const storage::ChunkPtr& chunk : sample.item.trajectory->chunks()) {
        if (message_.size() + entry.size() >= kMessageBytes) {
          Put(std::move(entry));
          entry = {};
        }
        entry.AddMessage(rpc::field::sample_entry::kData, rpc::EncodeChunk(chunk, compression_));
      }
    }
    entry.AddBool(rpc::field::sample_entry::kEndOfSequence, true);
    Put(std::move(entry));
  }

  std::deque<grpc::ByteBuffer> Take() {
    Flush();
    return std::move(messages_);
  }

 private:
  void Put(rpc::MessageWriter entry) {
    message_.AddMessage(rpc::field::sample_response::kEntries, std::move(entry));
    if (message_.size() >= kMessageBytes) Flush();
  }
  void Flush() {
    if (!message_.empty()) messages_.push_back(message_.TakeByteBuffer());
  }

  const rpc::Compression compression_;
  rpc::MessageWriter message_;
  std::deque<grpc::ByteBuffer> messages_;
};

// One request at a time: read it, then draw and write until it is served, then read the next.
class SampleReactor final : public grpc::ServerGenericBidiReactor,
                            public OpenStream,
                            public std::enable_shared_from_this<SampleReactor> {
 public:
  SampleReactor(ServicePtr service, OpenCalls* calls, bool near)
      : ticket_(calls->Enter()),
        service_(std::move(service)),
        compression_(near ? rpc::Compression::kLiteral : rpc::Compression::kSnappy) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());  // The client has no further requests.
    if (absl::Status status = ReadRequest(); !status.ok()) return End(std::move(status));
    Draw();
  }

  void OnWriteDone(bool ok) override {
    {
      base::MutexLock lock(&mutex_);
      writing_ = false;
      responses_.pop_front();
      if (finishing_) return FinishLocked();
    }
    if (!ok) return End(absl::CancelledError("The client has gone."));
    Advance();
  }

  void OnCancel() override {
    table::Table::WaitId wait_id;
    std::shared_ptr<table::Table> table;
    {
      base::MutexLock lock(&mutex_);
      wait_id = wait_id_;
      table = table_;
    }
    if (wait_id != 0) table->Cancel(wait_id);
    End(absl::CancelledError("The client has gone."));
  }

  void OnDone() override { self_.reset(); }

  void EndForStop() override { End(absl::UnavailableError("The server has been stopped.")); }

 private:
  absl::Status ReadRequest() {
    GR_ASSIGN_OR_RETURN(const rpc::FlatMessage message, rpc::FlatMessage::Create(buffer_));
    GR_ASSIGN_OR_RETURN(request_, rpc::DecodeSampleRequest(message.view()));
    buffer_.Clear();
    if (request_.num_samples <= 0) {
      return base::InvalidArgument("`num_samples` must be > 0, but is ", request_.num_samples, ".");
    }
    GR_ASSIGN_OR_RETURN(auto table, service_->FindTable(request_.table));
    base::MutexLock lock(&mutex_);
    table_ = std::move(table);
    return absl::OkStatus();
  }

  void Draw() {
    std::shared_ptr<table::Table> table;
    uint64_t draw;
    {
      base::MutexLock lock(&mutex_);
      if (finishing_) return;
      table = table_;
      draw = ++draws_;
      wait_id_ = 0;
    }
    const table::Table::WaitId id = table->SampleAsync(
        std::min(request_.num_samples, kMaxDraw), absl::Now() + request_.timeout,
        [weak = weak_from_this()](absl::StatusOr<std::vector<table::SampledItem>> samples) {
          if (auto self = weak.lock()) self->OnSampled(std::move(samples));
        });
    if (id == 0) return;
    bool cancel;
    {
      base::MutexLock lock(&mutex_);
      cancel = finishing_;
      if (draws_ == draw) wait_id_ = id;
    }
    if (cancel) table->Cancel(id);  // The client went away while the draw was queued.
  }

  void OnSampled(absl::StatusOr<std::vector<table::SampledItem>> samples) {
    if (!samples.ok()) return End(service_->Explain(samples.status()));
    request_.num_samples -= samples->size();
    ResponsePacker packer(compression_);
    try {
      for (const table::SampledItem& sample : *samples) packer.Add(sample, request_.table);
    } catch (const std::bad_alloc&) {  // Others whom this thread serves next are still served.
      return End(absl::ResourceExhaustedError("The server is out of memory."));
    }
    {
      base::MutexLock lock(&mutex_);
      ++draws_;  // The wait is over.
      wait_id_ = 0;
      responses_ = packer.Take();
    }
    Advance();
  }

  // The next write of this draw, the next draw of this request, or the next request.
  void Advance() {
    bool draw = false;
    {
      base::MutexLock lock(&mutex_);
      if (finishing_) return;
      if (!responses_.empty()) {
        writing_ = true;
        StartWrite(&responses_.front());
      } else if (request_.num_samples > 0) {
        draw = true;
      } else {
        StartRead(&buffer_);
      }
    }
    if (draw) Draw();
  }

  void End(absl::Status status) {
    base::MutexLock lock(&mutex_);
    if (finishing_) return;
    finishing_ = true;
    status_ = std::move(status);
    if (!writing_) FinishLocked();
  }

  void FinishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    responses_.clear();
    Finish(rpc::ToGrpc(status_));
  }

  const OpenCalls::Ticket ticket_;
  std::shared_ptr<SampleReactor> self_;
  const ServicePtr service_;
  const rpc::Compression compression_;
  grpc::ByteBuffer buffer_;
  rpc::SampleRequest request_;  // `num_samples` counts down. Used by one callback at a time.

  base::Mutex mutex_;
  std::shared_ptr<table::Table> table_ ABSL_GUARDED_BY(mutex_);
  table::Table::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the draw that waits.
  uint64_t draws_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<grpc::ByteBuffer> responses_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerGenericBidiReactor* NewSampleReactor(ServicePtr service, OpenCalls* calls, bool near) {
  auto reactor = std::make_shared<SampleReactor>(std::move(service), calls, near);
  reactor->Start();
  calls->AddStream(reactor);
  return reactor.get();
}

}  // namespace gear_reverb::server
