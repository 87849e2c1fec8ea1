// A server for the tests of writers: records what is sent and does what the test says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/writer/insert_stream.h"

namespace gear_reverb::writer {

struct SentItem {
  NewItem item;
  int stream = 0;                        // Number of the stream, from 0.
  std::vector<uint64_t> new_chunk_keys;  // That the server did not hold.
  std::vector<uint64_t> keep_chunk_keys;
};

// Thread-safe. Confirms nothing by itself unless `auto_confirm`; ends streams when told to. Events
// come from a thread per stream. Make it with std::make_shared.
class FakeServer : public InsertStreamFactory, public std::enable_shared_from_this<FakeServer> {
 public:
  std::unique_ptr<InsertStream> OpenInsertStream(InsertStreamEvents events) override {
    return std::make_unique<Stream>(shared_from_this(), std::move(events));
  }

  // Every item is confirmed right after Send, from another thread.
  void set_auto_confirm(bool on) {
    base::MutexLock lock(&mutex_);
    auto_confirm_ = on;
  }
  // Streams opened from now on end at once with this status; OK: they work.
  void set_refuse(absl::Status status) {
    base::MutexLock lock(&mutex_);
    refuse_ = std::move(status);
  }

  // Called at the start of every Send, in its thread, without the server's lock.
  void set_on_send(std::function<void(const NewItem&)> on_send) {
    base::MutexLock lock(&mutex_);
    on_send_ = std::move(on_send);
  }

  // Wait, with a generous limit, until so many items were sent, or streams opened, in all.
  bool WaitForItems(size_t count) {
    base::MutexLock lock(&mutex_);
    return changed_.WaitUntil(&mutex_, absl::Now() + absl::Seconds(20),
                              [&] { return items_.size() >= count; });
  }
  bool WaitForStreams(size_t count) {
    base::MutexLock lock(&mutex_);
    return changed_.WaitUntil(&mutex_, absl::Now() + absl::Seconds(20),
                              [&] { return streams_ >= count; });
  }

  // Confirms some, or all unconfirmed items that were sent on the live stream.
  void Confirm(std::vector<uint64_t> keys) {
    base::MutexLock lock(&mutex_);
    for (uint64_t key : keys) {
      unconfirmed_.erase(std::remove(unconfirmed_.begin(), unconfirmed_.end(), key),
                         unconfirmed_.end());
    }
    if (live_ != nullptr) live_->Post({.confirmed = std::move(keys)});
  }
  void ConfirmAll() {
    base::MutexLock lock(&mutex_);
    if (live_ == nullptr || unconfirmed_.empty()) return;
    live_->Post({.confirmed = std::exchange(unconfirmed_, {})});
  }
  // Ends the live stream.
  void End(const absl::Status& status) {
    base::MutexLock lock(&mutex_);
    if (live_ != nullptr) live_->End(status);
  }

  std::vector<SentItem> items() const {
    base::MutexLock lock(&mutex_);
    return items_;
  }
  void ForgetItems() {
    base::MutexLock lock(&mutex_);
    items_.clear();
  }
  size_t streams() const {
    base::MutexLock lock(&mutex_);
    return streams_;
  }
  // A broken rule of InsertStream: an unknown keep key, a Send after Close. Empty if none.
  std::string misuse() const {
    base::MutexLock lock(&mutex_);
    return misuse_;
  }

 private:
  struct Event {
    std::vector<uint64_t> confirmed = {};
    bool end = false;
    absl::Status status = {};
  };

  class Stream : public InsertStream {
   public:
    Stream(std::shared_ptr<FakeServer> server, InsertStreamEvents events)
        : server_(std::move(server)), events_(std::move(events)) {
      base::MutexLock lock(&server_->mutex_);
      if (server_->live_ != nullptr) server_->misuse_ = "two streams at once";
      server_->live_ = this;
      server_->unconfirmed_.clear();
      number_ = static_cast<int>(server_->streams_++);
      thread_ = std::thread([this] { Deliver(); });
      if (!server_->refuse_.ok()) End(server_->refuse_);
      server_->changed_.NotifyAll();
    }

    ~Stream() override {
      {
        base::MutexLock lock(&server_->mutex_);
        server_->live_ = nullptr;
        cancelled_ = true;
        server_->changed_.NotifyAll();
      }
      thread_.join();
    }

    absl::Status Send(NewItem item, absl::Span<const uint64_t> keep_chunk_keys) override {
      std::function<void(const NewItem&)> on_send;
      {
        base::MutexLock lock(&server_->mutex_);
        on_send = server_->on_send_;
      }
      if (on_send) on_send(item);
      base::MutexLock lock(&server_->mutex_);
      if (closed_) server_->misuse_ = "Send after Close";
      if (ended_) return absl::FailedPreconditionError("The stream has ended.");
      SentItem sent{item, number_, {}, {keep_chunk_keys.begin(), keep_chunk_keys.end()}};
      for (const storage::ChunkPtr& chunk : item.trajectory->chunks()) {
        if (held_.insert(chunk->key()).second) sent.new_chunk_keys.push_back(chunk->key());
      }
      absl::flat_hash_set<uint64_t> keep;
      for (uint64_t key : keep_chunk_keys) {
        if (!held_.contains(key)) server_->misuse_ = "an unknown chunk is to be kept";
        if (!keep.insert(key).second) server_->misuse_ = "a chunk is kept twice";
      }
      held_ = std::move(keep);
      server_->unconfirmed_.push_back(item.key);
      server_->items_.push_back(std::move(sent));
      if (server_->auto_confirm_) Post({.confirmed = std::exchange(server_->unconfirmed_, {})});
      server_->changed_.NotifyAll();
      return absl::OkStatus();
    }

    void Close() override {
      base::MutexLock lock(&server_->mutex_);
      closed_ = true;
      if (server_->unconfirmed_.empty()) End(absl::OkStatus());
    }

    // With the server's lock held.
    void Post(Event event) {
      if (ended_) return;
      queue_.push_back(std::move(event));
      server_->changed_.NotifyAll();
    }
    void End(const absl::Status& status) {
      Post({.end = true, .status = status});
      ended_ = true;
    }

   private:
    void Deliver() {
      while (true) {
        Event event;
        {
          base::MutexLock lock(&server_->mutex_);
          server_->changed_.WaitUntil(&server_->mutex_, absl::InfiniteFuture(),
                                      [this] { return cancelled_ || !queue_.empty(); });
          if (cancelled_) return;
          event = std::move(queue_.front());
          queue_.pop_front();
        }
        if (event.end) return events_.on_ended(event.status);
        events_.on_confirmed(event.confirmed);
      }
    }

    const std::shared_ptr<FakeServer> server_;
    const InsertStreamEvents events_;
    int number_;
    bool closed_ = false, ended_ = false, cancelled_ = false;
    absl::flat_hash_set<uint64_t> held_;
    std::deque<Event> queue_;
    std::thread thread_;
  };

  mutable base::Mutex mutex_;  // Of the streams' members too.
  base::CondVar changed_;
  bool auto_confirm_ = false;
  std::function<void(const NewItem&)> on_send_;
  absl::Status refuse_;
  std::vector<SentItem> items_;
  std::vector<uint64_t> unconfirmed_;  // On the live stream.
  size_t streams_ = 0;
  Stream* live_ = nullptr;
  std::string misuse_;
};

}  // namespace gear_reverb::writer
