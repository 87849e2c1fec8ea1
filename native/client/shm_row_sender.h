// Stacked rows on their way to a server over shared memory, without a writer's bookkeeping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "native/base/philox.h"
#include "native/client/connection.h"
#include "native/client/shm_control.h"
#include "native/shm/frames.h"
#include "native/shm/ring.h"

namespace gear_reverb::client {

// An insert stream that the calling thread writes to and listens to by itself: rows are copied from
// where they lie into the ring, with a record per chunk of them. Thread-compatible.
class ShmRowSender {
 public:
  // RESOURCE_EXHAUSTED without memory for a ring or a descriptor, UNAVAILABLE without a server.
  static absl::StatusOr<std::unique_ptr<ShmRowSender>> Open(const ShmPeer& peer);

  // Inserts all items and waits for their confirmation. UNAVAILABLE if the server goes away,
  // DEADLINE_EXCEEDED, CANCELLED when the program interrupts, or what the server says. After an
  // error the sender is of no more use.
  absl::Status Insert(const StackedItems& items, absl::Time deadline, ConfirmedItems* confirmed);

 private:
  ShmRowSender(std::unique_ptr<shm::RingProducer> ring, shm::Socket socket)
      : ring_(std::move(ring)), socket_(std::move(socket)), random_(base::RandomUint64()) {}

  absl::Status Put(const void* data, size_t bytes);
  absl::Status Publish();
  // Until there is room in the ring.
  absl::Status WaitForRoom();
  // Until the server says something, and takes note of it.
  absl::Status WaitForMessage();
  absl::Status OnMessages();
  absl::Status OnConfirmed(absl::string_view body);
  size_t RowOf(uint64_t key);  // Their number for an unknown one.

  const std::unique_ptr<shm::RingProducer> ring_;
  const shm::Socket socket_;
  base::Philox random_;
  shm::FrameReader reader_;
  std::string record_;  // Scratch.
  // Of the call.
  absl::Time deadline_;
  absl::Span<const uint64_t> keys_;
  ConfirmedItems* confirmed_ = nullptr;
  size_t next_ = 0;  // The first row that is not confirmed.
  // Of all rows, once one is confirmed before another: as samplers let waiting items in.
  absl::flat_hash_map<uint64_t, size_t> row_of_;
};

}  // namespace gear_reverb::client
