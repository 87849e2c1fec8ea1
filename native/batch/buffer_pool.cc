#include "native/batch/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "native/base/status.h"

namespace gear_reverb::batch {
namespace {

// Small buffers are the allocator's, which has fresh memory ready.
constexpr size_t kMapFromBytes = size_t{64} << 10;

// Four sizes per doubling, so that batches of nearly the same size share buffers.
size_t CapacityFor(size_t bytes) {
  constexpr size_t kSmallest = 1024;
  if (bytes <= kSmallest) return kSmallest;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::Create(size_t kept) {
  return std::shared_ptr<BufferPool>(new BufferPool(kept));
}

BufferPool::~BufferPool() {
  for (const Buffer& buffer : idle_) Unmap(buffer);
}

absl::StatusOr<BufferPool::Buffer> BufferPool::Map(size_t bytes) {
  const auto no_memory = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat("No memory for a batch of ", bytes, " bytes."));
  };
  if (bytes > SIZE_MAX / 2) return no_memory();
  size_t capacity = CapacityFor(bytes);
  if (capacity < kMapFromBytes) {
    void* const data = ::operator new(capacity, std::align_val_t{kAlignment}, std::nothrow);
    if (data == nullptr) return no_memory();
    return Buffer{static_cast<std::byte*>(data), capacity};
  }
  const bool huge = capacity >= kHugePageBytes;
  const size_t page = huge ? kHugePageBytes : size_t{4096};
  capacity = (capacity + page - 1) / page * page;
  const size_t slack = huge ? kHugePageBytes : 0;
  void* const mapped =
      mmap(nullptr, capacity + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return no_memory();
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t head = slack == 0 ? 0 : -reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  if (head > 0) munmap(begin, head);
  if (slack > head) munmap(begin + head + capacity, slack - head);
  if (huge) madvise(begin + head, capacity, MADV_HUGEPAGE);  // A wish; it may not be granted.
  return Buffer{begin + head, capacity};
}

void BufferPool::Unmap(const Buffer& buffer) {
  if (buffer.capacity < kMapFromBytes) {
    ::operator delete(buffer.data, std::align_val_t{kAlignment});
  } else {
    munmap(buffer.data, buffer.capacity);
  }
}

absl::StatusOr<std::shared_ptr<std::byte>> BufferPool::Allocate(size_t bytes) {
  Buffer buffer;
  {
    base::MutexLock lock(&mutex_);
    // The last one that fits, since its bytes are the likeliest to be in a cache; but none that is
    // much too large, which a larger batch may want.
    for (size_t i = idle_.size(); i-- > 0;) {
      if (idle_[i].capacity < bytes || idle_[i].capacity / 4 > CapacityFor(bytes)) continue;
      buffer = idle_[i];
      idle_.erase(idle_.begin() + i);
      idle_bytes_ -= buffer.capacity;
      break;
    }
  }
  if (buffer.data == nullptr) {
    GR_ASSIGN_OR_RETURN(buffer, Map(bytes));
  }
  // The pool goes when the sampler does; what is still in use then is freed by its last owner.
  return std::shared_ptr<std::byte>(buffer.data, [pool = weak_from_this(), buffer](std::byte*) {
    if (const auto self = pool.lock()) {
      self->Return(buffer);
    } else {
      Unmap(buffer);
    }
  });
}

void BufferPool::Return(Buffer buffer) {
  std::vector<Buffer> dropped;
  {
    base::MutexLock lock(&mutex_);
    largest_ = std::max(largest_, buffer.capacity);
    idle_.push_back(buffer);
    idle_bytes_ += buffer.capacity;
    while (idle_bytes_ > kept_ * largest_) {
      idle_bytes_ -= idle_.front().capacity;
      dropped.push_back(idle_.front());
      idle_.erase(idle_.begin());
    }
  }
  for (const Buffer& old : dropped) Unmap(old);
}

size_t BufferPool::idle_bytes() const {
  base::MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace gear_reverb::batch
