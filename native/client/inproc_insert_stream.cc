#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/client/inproc_streams.h"
#include "native/service/insert_session.h"

namespace gear_reverb::client {
namespace {

// Carries what the tables confirm, in whatever thread, to the writer in a thread of its own: the
// writer must not be called from within its own call. Shared with the tables' callbacks.
class Confirmations {
 public:
  explicit Confirmations(writer::InsertStreamEvents events) : events_(std::move(events)) {}

  void ItemSent() {
    base::MutexLock lock(&mutex_);
    ++pending_;
  }

  void ItemDone(uint64_t key, absl::Status status) {
    base::MutexLock lock(&mutex_);
    --pending_;
    if (status.ok()) {
      keys_.push_back(key);
    } else {
      EndLocked(std::move(status));
    }
    changed_.NotifyAll();
  }

  // No more items: ends with OK once all are done.
  void Close() {
    base::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }

  void End(absl::Status status) {
    base::MutexLock lock(&mutex_);
    EndLocked(std::move(status));
    changed_.NotifyAll();
  }

  bool ended() {
    base::MutexLock lock(&mutex_);
    return end_.has_value();
  }

  // Reports events until the end.
  void Run() {
    while (true) {
      std::vector<uint64_t> keys;
      std::optional<absl::Status> end;
      {
        base::MutexLock lock(&mutex_);
        changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this] {
          return !keys_.empty() || end_.has_value() || (closing_ && pending_ == 0);
        });
        keys.swap(keys_);
        if (keys.empty()) {
          if (!end_.has_value()) end_ = absl::OkStatus();
          end = end_;
        }
      }
      if (end.has_value()) return events_.on_ended(*end);
      events_.on_confirmed(keys);
    }
  }

 private:
  void EndLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_.has_value()) end_ = std::move(status);
  }

  const writer::InsertStreamEvents events_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<uint64_t> keys_ ABSL_GUARDED_BY(mutex_);
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

class InprocInsertStream final : public writer::InsertStream {
 public:
  InprocInsertStream(std::shared_ptr<service::ReplayService> service,
                     writer::InsertStreamEvents events)
      : service_(service),
        session_(std::move(service)),
        confirmations_(std::make_shared<Confirmations>(std::move(events))),
        thread_([confirmations = confirmations_] { confirmations->Run(); }) {}

  ~InprocInsertStream() override {
    confirmations_->End(absl::CancelledError("The writer has gone."));
    thread_.join();
  }

  absl::Status Send(writer::NewItem item, absl::Span<const uint64_t> keep_chunk_keys) override {
    if (confirmations_->ended()) {
      return absl::UnavailableError("The stream to the server has ended.");
    }
    absl::Status status = Insert(std::move(item), keep_chunk_keys);
    if (!status.ok()) confirmations_->End(service_->Explain(std::move(status)));
    return absl::OkStatus();  // As over a wire: the failure comes as the stream's end.
  }

  void Close() override { confirmations_->Close(); }

 private:
  absl::Status Insert(writer::NewItem item, absl::Span<const uint64_t> keep_chunk_keys) {
    if (service_->stopped()) return absl::UnavailableError("The server has been stopped.");
    for (const storage::ChunkPtr& chunk : item.trajectory->chunks()) {
      if (session_.FindChunk(chunk->key()) == nullptr) GR_RETURN_IF_ERROR(CopyIn(*chunk));
    }
    std::vector<service::InsertSession::NewItem> items(1);
    auto& [table, insertion] = items[0];
    GR_ASSIGN_OR_RETURN(table, session_.FindTable(item.table));
    insertion.item.key = item.key;
    insertion.item.priority = item.priority;
    GR_ASSIGN_OR_RETURN(insertion.item.trajectory, Translate(*item.trajectory));
    insertion.done = [confirmations = confirmations_, service = service_,
                      key = item.key](absl::Status status) {
      confirmations->ItemDone(key, service->Explain(std::move(status)));
    };
    GR_RETURN_IF_ERROR(session_.KeepOnly(keep_chunk_keys));
    confirmations_->ItemSent();
    session_.AddItems(std::move(items));
    return absl::OkStatus();
  }

  absl::Status CopyIn(const storage::Chunk& chunk) {
    std::vector<tensor::TensorView> views;
    views.reserve(chunk.columns().size());
    for (const storage::ChunkColumn& column : chunk.columns()) views.push_back(column.view());
    GR_ASSIGN_OR_RETURN(storage::ChunkPtr copy,
                        storage::CopyToChunk(service_->arena(), chunk.key(), chunk.range(), views));
    session_.AddChunk(std::move(copy));
    return absl::OkStatus();
  }

  // The same slices of the service's copies of the chunks.
  absl::StatusOr<storage::TrajectoryPtr> Translate(const storage::Trajectory& trajectory) {
    storage::TrajectoryBuilder builder;
    builder.columns.reserve(trajectory.columns.size());
    for (const storage::TrajectoryColumn& column : trajectory.columns) {
      auto& to = builder.columns.emplace_back();
      to.squeeze = column.squeeze;
      to.slices.reserve(column.slices.size());
      for (const storage::ChunkSlice& slice : column.slices) {
        to.slices.push_back(
            {session_.FindChunk(slice.chunk->key()), slice.offset, slice.length, slice.column});
      }
    }
    storage::TrajectoryPtr translated = std::move(builder).Build();
    GR_RETURN_IF_ERROR(storage::CheckTrajectory(*translated));
    return translated;
  }

  const std::shared_ptr<service::ReplayService> service_;
  service::InsertSession session_;
  const std::shared_ptr<Confirmations> confirmations_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<writer::InsertStream> NewInprocInsertStream(
    std::shared_ptr<service::ReplayService> service, writer::InsertStreamEvents events) {
  return std::make_unique<InprocInsertStream>(std::move(service), std::move(events));
}

}  // namespace gear_reverb::client
