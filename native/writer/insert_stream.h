// The way of items from a writer to a server, whatever carries them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/storage/trajectory.h"

namespace gear_reverb::writer {

struct NewItem {
  uint64_t key = 0;
  std::string table;
  double priority = 0;
  storage::TrajectoryPtr trajectory;
};

// What a stream reports. Called from any thread, one call at a time per stream, with no lock of
// the stream held; never from within the constructor, Send or Close; not after the stream's
// destructor returned.
struct InsertStreamEvents {
  // The table has inserted (or updated) these items.
  std::function<void(absl::Span<const uint64_t> keys)> on_confirmed;
  // Once: the stream has ended, with OK only after Close. Nothing is confirmed afterwards.
  std::function<void(absl::Status)> on_ended;
};

// Thread-compatible: one thread at a time calls Send and Close.
class InsertStream {
 public:
  // Cancels the stream if it is still open and waits for a running event to return.
  virtual ~InsertStream() = default;

  // Queues those chunks of the item that the server does not hold, then the item; afterwards the
  // server holds exactly the chunks with `keep_chunk_keys` (each must be of this or an earlier
  // item of this stream). Never blocks on the network. An error means that the stream has ended.
  virtual absl::Status Send(NewItem item, absl::Span<const uint64_t> keep_chunk_keys) = 0;

  // No more items: the stream ends, after what was queued is sent and confirmed.
  virtual void Close() = 0;
};

// Where streams come from. Thread-safe.
class InsertStreamFactory {
 public:
  virtual ~InsertStreamFactory() = default;
  // Does not wait for the server: a connection failure comes as on_ended(UNAVAILABLE).
  virtual std::unique_ptr<InsertStream> OpenInsertStream(InsertStreamEvents events) = 0;
  // Whom to ask for a stream after one that has ended; null: this. May look for the server for some
  // seconds, and call the host program's interrupt hook: no lock may be held. UNAVAILABLE, or an
  // error that is final.
  virtual absl::StatusOr<std::shared_ptr<InsertStreamFactory>> Reach() { return nullptr; }
};

}  // namespace gear_reverb::writer
