// A ring of bytes in shared memory, from one producer to one consumer, usually in two processes.
//
// The data is mapped twice, back to back, so that what is in the ring always lies contiguously.
// Positions count bytes since the beginning. Each side keeps its own position to itself, publishes
// it, and believes nothing of the other's: positions that make no sense are errors, and whoever
// reads data must expect it to change while it reads.
//
// Sleeping: a side that finds nothing to do says so in the ring (Sleep, WaitForRoom), looks again,
// and then waits for a doorbell by other means. The other side asks, after it has published,
// whether a doorbell is due. No doorbell is lost, and none is rung for a side that is awake.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "native/shm/unique_fd.h"

namespace gear_reverb::shm {

struct RingHeader;

// The mapping of a ring.
class RingMapping {
 public:
  static absl::StatusOr<RingMapping> Map(const UniqueFd& fd, size_t capacity, bool writable_data);
  RingMapping(RingMapping&& other) noexcept;
  RingMapping& operator=(RingMapping&&) = delete;
  ~RingMapping();

  RingHeader& header() const { return *reinterpret_cast<RingHeader*>(base_); }
  // The byte at `position`; as many as the capacity follow it.
  std::byte* at(uint64_t position) const;
  size_t capacity() const { return capacity_; }

 private:
  RingMapping(std::byte* base, size_t capacity) : base_(base), capacity_(capacity) {}

  std::byte* base_;
  size_t capacity_;
};

// Thread-compatible.
class RingProducer {
 public:
  // A new ring; `capacity` is a power of two of at least 64 KiB. RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<RingProducer>> Create(size_t capacity);

  // The ring's memory, to be given to the consumer.
  int fd() const { return fd_.get(); }
  size_t capacity() const { return mapping_.capacity(); }

  // Bytes that can be written now; 0 also if the consumer's position makes no sense.
  size_t Room() const;
  // Where to write them.
  std::byte* data() const { return mapping_.at(head_); }
  // That many were written. They travel with the next Publish.
  void Advance(size_t bytes) { head_ += bytes; }
  // True if the consumer sleeps and is to be woken.
  bool Publish();

  // Announces that this side waits for a doorbell. False, and it does not, if there is more room
  // than `room`, what it had.
  bool WaitForRoom(size_t room);

 private:
  RingProducer(UniqueFd fd, RingMapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  const UniqueFd fd_;
  const RingMapping mapping_;
  uint64_t head_ = 0;
};

// Thread-compatible.
class RingConsumer {
 public:
  // INVALID_ARGUMENT for memory that is no ring.
  static absl::StatusOr<std::unique_ptr<RingConsumer>> Open(UniqueFd fd);

  size_t capacity() const { return mapping_.capacity(); }

  // Bytes that can be read now. INVALID_ARGUMENT if the producer's position makes no sense.
  absl::StatusOr<size_t> Readable() const;
  const std::byte* data() const { return mapping_.at(tail_); }
  // That many were read. Their room is the producer's with the next Publish.
  void Advance(size_t bytes) { tail_ += bytes; }
  // True if the producer waits and is to be woken: not before half of the ring is free.
  bool Publish();

  // Announces that this side waits for a doorbell. False, and it does not, if there is something.
  bool Sleep();

 private:
  explicit RingConsumer(RingMapping mapping) : mapping_(std::move(mapping)) {}

  const RingMapping mapping_;
  uint64_t tail_ = 0;
};

}  // namespace gear_reverb::shm
