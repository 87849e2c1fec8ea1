// Memory of batches, used again: touching fresh memory costs several times what filling it does.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "native/base/mutex.h"

namespace gear_reverb::batch {

// Thread-safe. A buffer comes back when its last owner lets go of it, and is not handed out before;
// buffers may outlive the pool. What lies idle is at most `kept` buffers' worth of the largest one.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kAlignment = 128;
  // From here on buffers start at, and are backed by, huge pages where the system has them.
  static constexpr size_t kHugePageBytes = size_t{2} << 20;

  static std::shared_ptr<BufferPool> Create(size_t kept);
  ~BufferPool();

  // At least `bytes` bytes of any content. RESOURCE_EXHAUSTED if the system has no memory.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t bytes);

  size_t idle_bytes() const;

 private:
  struct Buffer {
    std::byte* data = nullptr;
    size_t capacity = 0;
  };

  explicit BufferPool(size_t kept) : kept_(kept) {}
  static absl::StatusOr<Buffer> Map(size_t bytes);
  static void Unmap(const Buffer& buffer);
  void Return(Buffer buffer);

  const size_t kept_;
  mutable base::Mutex mutex_;
  std::vector<Buffer> idle_ ABSL_GUARDED_BY(mutex_);  // The one that came back last is the last.
  size_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t largest_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gear_reverb::batch
