#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "native/base/mutex.h"
#include "native/base/status.h"
#include "native/client/fork_guard.h"
#include "native/client/shm_limits.h"
#include "native/client/shm_streams.h"
#include "native/shm/handshake.h"
#include "native/shm/insert_records.h"
#include "native/shm/key_runs.h"
#include "native/shm/ring.h"

namespace gear_reverb::client {
namespace {

// Records and payloads on their way into the ring; what has no room yet waits. Thread-compatible.
class RingWriter {
 public:
  explicit RingWriter(std::unique_ptr<shm::RingProducer> ring) : ring_(std::move(ring)) {}

  void AddChunk(storage::ChunkPtr chunk) {
    records_.clear();
    shm::EncodeChunk(*chunk, &records_);
    Add(std::move(chunk));
  }
  absl::Status AddItem(const writer::NewItem& item, absl::Span<const uint64_t> keep_chunk_keys) {
    records_.clear();
    GR_RETURN_IF_ERROR(shm::EncodeItem(item.key, item.priority, item.table, *item.trajectory,
                                       keep_chunk_keys, &records_));
    Add(nullptr);
    return absl::OkStatus();
  }
  void AddClose() {
    records_.clear();
    shm::EncodeClose(&records_);
    Add(nullptr);
  }

  // Writes what there is room for. True if the server sleeps and is to be woken. If something is
  // left over, a doorbell will come.
  bool Write() {
    bool wake = false;
    while (true) {
      const bool done = WriteQueued();
      wake |= ring_->Publish();
      if (done || ring_->WaitForRoom(0)) return wake;
    }
  }

 private:
  // A record, and after it the bytes of a chunk.
  struct Part {
    std::string record;
    storage::ChunkPtr chunk;
    size_t column = 0;
    size_t written = 0;  // Of the record, then of the column.
    bool in_payload = false;
  };

  void Add(storage::ChunkPtr chunk) {
    const size_t bytes =
        records_.size() + (chunk == nullptr ? 0 : static_cast<size_t>(chunk->bytes()));
    if (queue_.empty() && bytes <= ring_->Room()) {
      Put(records_.data(), records_.size());
      if (chunk == nullptr) return;
      for (const storage::ChunkColumn& column : chunk->columns()) {
        Put(column.data.data(), column.data.size());
      }
      return;
    }
    queue_.push_back({records_, std::move(chunk)});
  }

  void Put(const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(ring_->data(), data, bytes);
    ring_->Advance(bytes);
  }

  // Whether all of [data + *written, data + bytes) was written.
  bool PutRest(const void* data, size_t bytes, size_t* written) {
    const size_t now = std::min(bytes - *written, ring_->Room());
    Put(static_cast<const std::byte*>(data) + *written, now);
    *written += now;
    return *written == bytes;
  }

  // Whether nothing is left.
  bool WriteQueued() {
    while (!queue_.empty()) {
      if (!WritePart(queue_.front())) return false;
      queue_.pop_front();
    }
    return true;
  }

  bool WritePart(Part& part) {
    if (!part.in_payload) {
      if (!PutRest(part.record.data(), part.record.size(), &part.written)) return false;
      part.in_payload = true;
      part.written = 0;
    }
    if (part.chunk == nullptr) return true;
    for (; part.column < part.chunk->columns().size(); ++part.column, part.written = 0) {
      const memory::Block& data = part.chunk->columns()[part.column].data;
      if (!PutRest(data.data(), data.size(), &part.written)) return false;
    }
    return true;
  }

  const std::unique_ptr<shm::RingProducer> ring_;
  std::string records_;  // Scratch.
  std::deque<Part> queue_;
};

class ShmInsertStream final : public writer::InsertStream {
 public:
  ShmInsertStream(std::shared_ptr<ShmPeer> peer, shm::Socket socket,
                  std::unique_ptr<shm::RingProducer> ring, writer::InsertStreamEvents events)
      : peer_(std::move(peer)),
        socket_(std::move(socket)),
        events_(std::move(events)),
        ring_(std::move(ring)),
        thread_([this] { Run(); }) {}

  ~ShmInsertStream() override {
    socket_.Shutdown();  // The thread meets the end.
    thread_.join();
  }

  absl::Status Send(writer::NewItem item, absl::Span<const uint64_t> keep_chunk_keys) override {
    GR_RETURN_IF_ERROR(CheckNotForked());
    base::MutexLock lock(&mutex_);
    if (ended_) return absl::UnavailableError("The stream to the server has ended.");
    for (const storage::TrajectoryColumn& column : item.trajectory->columns) {
      for (const storage::ChunkSlice& slice : column.slices) {
        if (sent_chunks_.insert(slice.chunk->key()).second) ring_.AddChunk(slice.chunk);
      }
    }
    if (absl::Status added = ring_.AddItem(item, keep_chunk_keys); !added.ok()) {
      failure_ = added;
      socket_.Shutdown();  // The thread reports the failure.
      return absl::OkStatus();
    }
    ++unconfirmed_;
    sent_chunks_.clear();
    sent_chunks_.insert(keep_chunk_keys.begin(), keep_chunk_keys.end());
    WriteLocked();
    return absl::OkStatus();
  }

  void Close() override {
    base::MutexLock lock(&mutex_);
    if (std::exchange(closing_, true) || ended_) return;
    ring_.AddClose();
    WriteLocked();
  }

 private:
  void WriteLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // A socket that takes nothing has no reader, which the thread will see.
    if (ring_.Write()) socket_.Send(shm::MakeFrame(shm::MessageType::kDoorbell)).IgnoreError();
  }

  // Reports events until the end.
  void Run() {
    absl::Status end = ReadUntilEnd();
    {
      base::MutexLock lock(&mutex_);
      ended_ = true;
      if (!failure_.ok()) end = failure_;
      if (end.ok() && !closing_) end = absl::UnavailableError("The server ended the stream.");
    }
    events_.on_ended(std::move(end));
  }

  absl::Status ReadUntilEnd() {
    shm::FrameReader reader;
    while (true) {
      const absl::StatusOr<bool> received = reader.Receive(socket_, nullptr);
      if (!received.ok()) {
        return absl::UnavailableError(
            absl::StrCat("The server has gone: ", received.status().message()));
      }
      if (!*received) {
        socket_.WaitReadable(absl::InfiniteDuration());
        continue;
      }
      while (true) {
        const auto frame = reader.Next();
        if (!frame.ok()) return base::Internal(frame.status().message());
        if (!frame->has_value()) break;
        if ((*frame)->type == shm::MessageType::kEnd) return shm::DecodeStatus((*frame)->body);
        GR_RETURN_IF_ERROR(OnFrame(**frame));
      }
    }
  }

  absl::Status OnFrame(const shm::Frame& frame) {
    switch (frame.type) {
      case shm::MessageType::kWelcome: return absl::OkStatus();
      case shm::MessageType::kDoorbell: {
        base::MutexLock lock(&mutex_);
        WriteLocked();
        return absl::OkStatus();
      }
      case shm::MessageType::kConfirmed: {
        absl::StatusOr<std::vector<uint64_t>> keys;
        {
          base::MutexLock lock(&mutex_);
          keys = shm::DecodeKeyRuns(frame.body, unconfirmed_);
          if (keys.ok()) unconfirmed_ -= keys->size();
        }
        if (!keys.ok()) return base::Internal("The server confirmed: ", keys.status().message());
        events_.on_confirmed(*keys);
        return absl::OkStatus();
      }
      default: break;
    }
    return base::Internal("The server sent ", static_cast<uint32_t>(frame.type), ".");
  }

  const std::shared_ptr<ShmPeer> peer_;
  const shm::Socket socket_;
  const writer::InsertStreamEvents events_;

  base::Mutex mutex_;
  RingWriter ring_ ABSL_GUARDED_BY(mutex_);
  // What the server holds once it has read everything that was written.
  absl::flat_hash_set<uint64_t> sent_chunks_ ABSL_GUARDED_BY(mutex_);
  uint64_t unconfirmed_ ABSL_GUARDED_BY(mutex_) = 0;  // Items.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);      // Of this side.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<writer::InsertStream>> NewShmInsertStream(
    std::shared_ptr<ShmPeer> peer, writer::InsertStreamEvents events) {
  GR_ASSIGN_OR_RETURN(auto ring, shm::RingProducer::Create(kRingBytes));
  GR_ASSIGN_OR_RETURN(shm::Socket socket, peer->Open(shm::Role::kInsert, ring->fd()));
  return std::make_unique<ShmInsertStream>(std::move(peer), std::move(socket), std::move(ring),
                                           std::move(events));
}

}  // namespace gear_reverb::client
