// Memory of blocks of samples. That of large blocks is used again: touching fresh memory costs
// several times what filling it does.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "native/base/mutex.h"

namespace gear_reverb::bindings {

// Thread-safe. Buffers may outlive the pool.
class BlockMemory : public std::enable_shared_from_this<BlockMemory> {
 public:
  // TensorFlow takes arrays over without a copy from this alignment on.
  static constexpr size_t kAlignment = 128;

  ~BlockMemory() {
    for (const Buffer& buffer : idle_) std::free(buffer.data);
  }

  // At least `bytes` bytes of any content. Throws std::bad_alloc.
  std::shared_ptr<std::byte> Allocate(size_t bytes) {
    Buffer buffer = Take(bytes);
    if (buffer.data == nullptr) {
      buffer.capacity = (bytes + kAlignment) / kAlignment * kAlignment;
      buffer.data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, buffer.capacity));
      if (buffer.data == nullptr) throw std::bad_alloc();
    }
    return std::shared_ptr<std::byte>(
        buffer.data, [buffer, pool = shared_from_this()](std::byte*) { pool->Return(buffer); });
  }

 private:
  static constexpr size_t kReusedFromBytes = 128 << 10;
  static constexpr size_t kMaxIdle = 4;

  struct Buffer {
    std::byte* data = nullptr;
    size_t capacity = 0;
  };

  // The smallest idle buffer that is large enough and less than twice as large; none is null.
  Buffer Take(size_t bytes) {
    if (bytes < kReusedFromBytes) return {};
    base::MutexLock lock(&mutex_);
    Buffer* best = nullptr;
    for (Buffer& buffer : idle_) {
      if (buffer.capacity < bytes || buffer.capacity / 2 > bytes) continue;
      if (best == nullptr || buffer.capacity < best->capacity) best = &buffer;
    }
    if (best == nullptr) return {};
    const Buffer taken = *best;
    idle_.erase(idle_.begin() + (best - idle_.data()));
    return taken;
  }

  void Return(Buffer buffer) {
    if (buffer.capacity >= kReusedFromBytes) {
      base::MutexLock lock(&mutex_);
      idle_.push_back(buffer);
      if (idle_.size() <= kMaxIdle) return;
      buffer = idle_.front();
      idle_.erase(idle_.begin());
    }
    std::free(buffer.data);
  }

  base::Mutex mutex_;
  std::vector<Buffer> idle_ ABSL_GUARDED_BY(mutex_);  // The one that came back last is the last.
};

}  // namespace gear_reverb::bindings
