#include "native/shm/ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "native/base/status.h"
#include "native/shm/sealed_memory.h"

namespace gear_reverb::shm {

// The first page. What one side writes lies apart from what the other writes.
struct RingHeader {
  alignas(128) std::atomic<uint64_t> head;  // The producer's position.
  std::atomic<uint32_t> producer_waits;     // Set by the producer, taken by the consumer.
  alignas(128) std::atomic<uint64_t> tail;  // The consumer's position.
  std::atomic<uint32_t> consumer_sleeps;    // Set by the consumer, taken by the producer.
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

namespace {

// A multiple of every page size in use (4, 16 and 64 KiB).
constexpr size_t kHeaderBytes = size_t{64} << 10;
constexpr size_t kMinCapacity = size_t{64} << 10;
constexpr size_t kMaxCapacity = size_t{256} << 20;

bool IsCapacity(size_t capacity) {
  return capacity >= kMinCapacity && capacity <= kMaxCapacity && std::has_single_bit(capacity);
}

absl::Status MapFailed() {
  return absl::ResourceExhaustedError(
      absl::StrCat("Cannot map a ring: mmap failed: ", std::strerror(errno), "."));
}

}  // namespace

absl::StatusOr<RingMapping> RingMapping::Map(const UniqueFd& fd, size_t capacity,
                                             bool writable_data) {
  const size_t bytes = kHeaderBytes + 2 * capacity;
  // Room for all of it first, so that the parts cannot fall apart.
  void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return MapFailed();
  RingMapping mapping(static_cast<std::byte*>(base), capacity);
  const auto map = [&](size_t at, size_t length, int protection, size_t offset) {
    return mmap(mapping.base_ + at, length, protection, MAP_SHARED | MAP_FIXED, fd.get(),
                static_cast<off_t>(offset)) != MAP_FAILED;
  };
  const int data_protection = writable_data ? PROT_READ | PROT_WRITE : PROT_READ;
  if (!map(0, kHeaderBytes, PROT_READ | PROT_WRITE, 0) ||
      !map(kHeaderBytes, capacity, data_protection, kHeaderBytes) ||
      !map(kHeaderBytes + capacity, capacity, data_protection, kHeaderBytes)) {
    return MapFailed();
  }
  return mapping;
}

RingMapping::RingMapping(RingMapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), capacity_(other.capacity_) {}

RingMapping::~RingMapping() {
  if (base_ != nullptr) munmap(base_, kHeaderBytes + 2 * capacity_);
}

std::byte* RingMapping::at(uint64_t position) const {
  return base_ + kHeaderBytes + (position & (capacity_ - 1));
}

absl::StatusOr<std::unique_ptr<RingProducer>> RingProducer::Create(size_t capacity) {
  if (!IsCapacity(capacity)) {
    return base::InvalidArgument("A ring of ", capacity, " bytes cannot be made.");
  }
  GR_ASSIGN_OR_RETURN(UniqueFd fd, NewSealedMemory("gear_reverb_ring", kHeaderBytes + capacity));
  GR_ASSIGN_OR_RETURN(RingMapping mapping, RingMapping::Map(fd, capacity, true));
  // Fresh memory is zeros, which is what the header begins with.
  return std::unique_ptr<RingProducer>(new RingProducer(std::move(fd), std::move(mapping)));
}

size_t RingProducer::Room() const {
  const uint64_t used = head_ - mapping_.header().tail.load(std::memory_order_acquire);
  return used > capacity() ? 0 : capacity() - used;
}

// The order of all sides' loads and stores of position and flag is one that all agree on (seq_cst):
// either the consumer sees the new position when it looks again, or this sees its flag.
bool RingProducer::Publish() {
  RingHeader& header = mapping_.header();
  header.head.store(head_, std::memory_order_seq_cst);
  return header.consumer_sleeps.load(std::memory_order_seq_cst) != 0 &&
         header.consumer_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingProducer::WaitForRoom(size_t room) {
  RingHeader& header = mapping_.header();
  header.producer_waits.store(1, std::memory_order_seq_cst);
  const uint64_t used = head_ - header.tail.load(std::memory_order_seq_cst);
  if (used > capacity() || capacity() - used <= room) return true;
  header.producer_waits.store(0, std::memory_order_seq_cst);
  return false;
}

absl::StatusOr<std::unique_ptr<RingConsumer>> RingConsumer::Open(UniqueFd fd) {
  GR_ASSIGN_OR_RETURN(const size_t bytes, SealedBytes(fd.get()));
  if (bytes <= kHeaderBytes || !IsCapacity(bytes - kHeaderBytes)) {
    return base::InvalidArgument("Memory of ", bytes, " bytes is no ring.");
  }
  GR_ASSIGN_OR_RETURN(RingMapping mapping, RingMapping::Map(fd, bytes - kHeaderBytes, false));
  return std::unique_ptr<RingConsumer>(new RingConsumer(std::move(mapping)));
}

absl::StatusOr<size_t> RingConsumer::Readable() const {
  const uint64_t readable = mapping_.header().head.load(std::memory_order_acquire) - tail_;
  if (readable > capacity()) {
    return base::InvalidArgument("The ring's head is ", readable, " bytes ahead of its tail, of ",
                                 capacity(), " at most.");
  }
  return readable;
}

bool RingConsumer::Publish() {
  RingHeader& header = mapping_.header();
  header.tail.store(tail_, std::memory_order_seq_cst);
  // Not for every little room: the producer would be woken too often.
  if (header.head.load(std::memory_order_relaxed) - tail_ > capacity() / 2) return false;
  return header.producer_waits.load(std::memory_order_seq_cst) != 0 &&
         header.producer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingConsumer::Sleep() {
  RingHeader& header = mapping_.header();
  header.consumer_sleeps.store(1, std::memory_order_seq_cst);
  if (header.head.load(std::memory_order_seq_cst) == tail_) return true;
  header.consumer_sleeps.store(0, std::memory_order_seq_cst);
  return false;
}

}  // namespace gear_reverb::shm
