// Items on their way to the server: sending, confirmation, back-pressure and reconnection, the same
// for all writers.
//
// Items are sent in the order of Submit on one stream. When the stream ends with UNAVAILABLE, a
// background thread (started by the first such end) reaches for the server after a pause that
// doubles from failure to failure, opens another one, and sends all unconfirmed items again, in
// order. Any other end, or failure to reach the server, is final:
// every later call returns its status.
//
// Chunks are told from each other by key only. Reverb's `delta_encoded` is a property of the wire's
// form of a chunk: a carrier that implements it takes it as an option of its InsertStreamFactory.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"
#include "native/memory/fork_guard.h"
#include "native/writer/held_chunks.h"
#include "native/writer/insert_stream.h"

namespace gear_reverb::writer {

struct SenderOptions {
  // Limits on what is sent but not confirmed; 0: none. See WaitForRoom.
  int64_t max_in_flight_bytes = int64_t{1} << 30;  // Of distinct chunks.
  int64_t max_in_flight_items = 0;
  // A wait for an unavailable server ends after this time with UNAVAILABLE.
  absl::Duration max_unavailable = absl::Minutes(5);
  // Pause before the first and before later attempts to reconnect.
  absl::Duration min_backoff = absl::Milliseconds(10);
  absl::Duration max_backoff = absl::Seconds(2);
  // A stream that has lasted this long, or confirmed an item, counts as a success.
  absl::Duration stable_after = absl::Seconds(3);
};

struct OutgoingItem {
  NewItem item;
  // One per distinct chunk. `user` lives as long as an item to come may use the chunk.
  struct Use {
    storage::ChunkPtr chunk;
    std::shared_ptr<const void> user;
  };
  absl::InlinedVector<Use, 2> uses;
};

struct SenderStats {
  int64_t in_flight_items = 0;
  int64_t in_flight_bytes = 0;
  int64_t reconnections = 0;
  absl::Duration blocked;  // Total time spent in WaitForRoom.
};

// In a forked child, where the stream's thread is not, every call returns FAILED_PRECONDITION, and
// Stop does nothing.
//
// Thread-safe. Waits are notified when they can end (no polling but for the host program's
// interrupt, which ends a wait with CANCELLED). Lock order: send_mutex_, then mutex_; stream events
// take mutex_ only.
class ItemSender {
 public:
  ItemSender(std::shared_ptr<InsertStreamFactory> factory, const SenderOptions& options);
  // As Stop. Not to be run in a forked child.
  ~ItemSender();
  ItemSender(const ItemSender&) = delete;
  ItemSender& operator=(const ItemSender&) = delete;

  // OK, or the error that ended the sender.
  absl::Status status() const;

  // Waits until unconfirmed chunk bytes do not exceed max_in_flight_bytes and unconfirmed items are
  // fewer than max_in_flight_items. So what is submitted at once goes over a limit at most once,
  // and one item larger than the limit can be sent. DEADLINE_EXCEEDED, UNAVAILABLE, CANCELLED or
  // status().
  absl::Status WaitForRoom(absl::Time deadline);

  // Sends the item, or queues it while the server is away. Never blocks on the network.
  absl::Status Submit(OutgoingItem item);

  // Waits until at most `limit` submitted items are unconfirmed. `unsent` is the number of items
  // that were not submitted yet, for the DEADLINE_EXCEEDED text. UNAVAILABLE once the server has
  // been away for `max_unavailable`; the items stay queued then. CANCELLED or status().
  absl::Status WaitUntilAtMost(int64_t limit, int64_t unsent, absl::Time deadline,
                               absl::Duration max_unavailable);
  absl::Status WaitUntilAtMost(int64_t limit, int64_t unsent, absl::Time deadline) {
    return WaitUntilAtMost(limit, unsent, deadline, options_.max_unavailable);
  }

  // Ends the sender with an error found by its owner. The first error stays.
  void Fail(const absl::Status& error);

  // Ends the sender at once: unconfirmed items are dropped, waits return `reason`. Idempotent.
  void Stop(const absl::Status& reason);

  SenderStats stats() const;

 private:
  struct InFlight {
    NewItem item;
    absl::InlinedVector<ChunkUse, 2> uses;
  };
  using InFlightPtr = std::shared_ptr<const InFlight>;

  absl::Status CheckNotForked() const;

  // Stream events.
  void OnConfirmed(absl::Span<const uint64_t> keys);
  void OnEnded(const absl::Status& status);

  void OpenStream(InsertStreamFactory& factory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_mutex_);
  void SendNow(const InFlight& item, const KeyCounts& later)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_mutex_);
  void ReconnectLoop();
  void Reconnect();

  void Add(InFlightPtr item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null if no item in flight has the key.
  InFlightPtr Remove(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every change of status_ or of what is in flight.
  void NoteClear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartReconnecting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration Backoff() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteSuccessIfStable(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time GiveUpTime(absl::Duration max_unavailable) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Wait(absl::Time deadline, absl::Duration max_unavailable,
                    const std::function<bool()>& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Connection() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<InsertStreamFactory> factory_;
  const SenderOptions options_;
  const uint64_t generation_ = memory::ForkGeneration();

  // Held while the stream is used or exchanged, so that items leave in order.
  base::Mutex send_mutex_;
  std::unique_ptr<InsertStream> stream_ ABSL_GUARDED_BY(send_mutex_);
  HeldChunks held_ ABSL_GUARDED_BY(send_mutex_);  // By the server, through stream_.

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  bool open_ ABSL_GUARDED_BY(mutex_) = false;  // stream_ exists and has not ended.
  absl::Time opened_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // In a row.
  absl::Time first_failure_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  uint64_t connection_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t reconnections_ ABSL_GUARDED_BY(mutex_) = 0;

  // By order of Submit; null where the item is confirmed, but not at the front.
  std::deque<InFlightPtr> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_order_ ABSL_GUARDED_BY(mutex_) = 0;  // Of queue_.front().
  absl::flat_hash_map<uint64_t, uint64_t> order_by_key_ ABSL_GUARDED_BY(mutex_);
  KeyCounts chunk_uses_ ABSL_GUARDED_BY(mutex_);  // In-flight items per chunk.
  int64_t in_flight_items() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(order_by_key_.size());
  }
  int64_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration blocked_ ABSL_GUARDED_BY(mutex_);
  // What confirmations may end: waits for room, and for at most so many items. `awaited_limit_` is
  // no less than the limit of any of the latter.
  int room_waits_ ABSL_GUARDED_BY(mutex_) = 0;
  int limit_waits_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t awaited_limit_ ABSL_GUARDED_BY(mutex_) = 0;
  // status_.ok() and HasRoom(): what most calls ask, without the lock.
  std::atomic<bool> clear_{true};

  std::thread reconnecting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::writer
