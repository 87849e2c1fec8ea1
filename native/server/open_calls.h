// The calls that a server has in progress, so that stopping it can end and await them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "native/base/mutex.h"

namespace gear_reverb::server {

class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Ends the call with UNAVAILABLE unless it is over.
  virtual void EndForStop() = 0;
};

// Thread-safe. Outlives the calls.
class OpenCalls {
 public:
  // Every call holds one from its beginning to its end.
  using Ticket = std::shared_ptr<void>;
  Ticket Enter() {
    base::MutexLock lock(&mutex_);
    ++calls_;
    return Ticket(this, [](OpenCalls* calls) { calls->Leave(); });
  }

  // Streams may be idle for ever: they are ended rather than awaited, also those to come.
  void AddStream(const std::shared_ptr<OpenStream>& stream) {
    {
      base::MutexLock lock(&mutex_);
      if (streams_.size() >= prune_at_) {
        std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
        prune_at_ = 2 * streams_.size() + 16;
      }
      streams_.push_back(stream);
      if (!ending_) return;
    }
    stream->EndForStop();
  }

  void EndStreams() {
    std::vector<std::weak_ptr<OpenStream>> streams;
    {
      base::MutexLock lock(&mutex_);
      ending_ = true;
      streams.swap(streams_);
    }
    for (const auto& weak : streams) {
      if (const auto stream = weak.lock()) stream->EndForStop();
    }
  }

  void WaitUntilNone(absl::Time deadline) {
    base::MutexLock lock(&mutex_);
    changed_.WaitUntil(&mutex_, deadline, [this] { return calls_ == 0; });
  }

 private:
  void Leave() {
    base::MutexLock lock(&mutex_);
    --calls_;
    changed_.NotifyAll();
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
  size_t prune_at_ ABSL_GUARDED_BY(mutex_) = 16;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gear_reverb::server
