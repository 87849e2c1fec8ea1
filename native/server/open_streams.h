// The streams a server has open, so that stopping it can end the idle ones too.
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

// Thread-safe.
class OpenStreams {
 public:
  void Add(std::weak_ptr<OpenStream> stream) {
    base::MutexLock lock(&mutex_);
    if (streams_.size() >= prune_at_) {
      std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
      prune_at_ = 2 * streams_.size() + 16;
    }
    streams_.push_back(std::move(stream));
  }

  void EndAll() {
    std::vector<std::weak_ptr<OpenStream>> streams;
    {
      base::MutexLock lock(&mutex_);
      streams.swap(streams_);
    }
    for (const auto& weak : streams) {
      if (const auto stream = weak.lock()) stream->EndForStop();
    }
  }

 private:
  base::Mutex mutex_;
  std::vector<std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
  size_t prune_at_ ABSL_GUARDED_BY(mutex_) = 16;
};

}  // namespace gear_reverb::server
