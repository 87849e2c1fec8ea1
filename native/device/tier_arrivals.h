// What has come to a tier since somebody last looked.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "native/base/mutex.h"

namespace gear_reverb::device {

// Thread-safe. Holds 8 bytes a column, of `most` at most.
class TierArrivals {
 public:
  explicit TierArrivals(size_t most) : most_(most) {}

  struct Taken {
    // Where the columns' bytes start in the process's memory. They may have gone since.
    std::vector<const std::byte*> blocks;
    bool more = false;  // There were others, which were too many.
  };

  void Add(const std::byte* block) {
    base::MutexLock lock(&mutex_);
    if (taken_.more) return;
    taken_.blocks.push_back(block);
    if (taken_.blocks.size() > most_) taken_ = {{}, true};
  }
  Taken Take() {
    base::MutexLock lock(&mutex_);
    return std::exchange(taken_, {});
  }

 private:
  const size_t most_;
  base::Mutex mutex_;  // Taken under the tier's; takes no other.
  Taken taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::device
