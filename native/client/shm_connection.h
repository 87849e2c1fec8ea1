// A server in another process of this host: data goes through shared memory, the rest over gRPC.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/base/mutex.h"
#include "native/client/connection.h"
#include "native/client/shm_control.h"
#include "native/client/shm_memory.h"
#include "native/client/shm_row_sender.h"

namespace gear_reverb::client {

// Thread-safe. Where shared memory cannot be had after all (no descriptors, no memory), the calls
// go over `grpc`, unless shared memory is forced.
class ShmConnection final : public Connection {
 public:
  // Errors of ShmControl::Open.
  static absl::StatusOr<std::shared_ptr<ShmConnection>> Connect(const std::string& socket_name,
                                                                const std::string& token,
                                                                std::shared_ptr<Connection> grpc,
                                                                bool forced, absl::Time deadline);

  std::shared_ptr<device::SegmentSource> memory() override { return NewShmMemory(peer_); }
  std::string data_plane() const override { return "shared-memory"; }
  bool usable() const override;
  // The server is there, but its memory cannot be shared with this process.
  bool refused() const { return peer_->refused.load(); }
  const std::string& token() const { return peer_->token; }

  std::unique_ptr<writer::InsertStream> OpenInsertStream(
      writer::InsertStreamEvents events) override;
  absl::StatusOr<std::unique_ptr<SampleStream>> OpenSampleStream(
      const std::string& table, absl::Duration rate_limiter_timeout) override;
  absl::StatusOr<std::unique_ptr<BatchStream>> OpenBatchStream(
      const std::string& table, absl::Duration rate_limiter_timeout) override;
  absl::Status InsertStacked(const StackedItems& items, absl::Time deadline,
                             ConfirmedItems* confirmed) override;
  absl::Status ReportUnused(const std::string& table, int64_t n) override;
  absl::Status MutatePriorities(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys,
                                absl::Time deadline) override;
  absl::Status Reset(const std::string& table, absl::Time deadline) override;
  absl::StatusOr<std::string> Checkpoint(absl::Time deadline) override;
  absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time deadline) override;

 private:
  ShmConnection(std::shared_ptr<ShmPeer> peer, std::shared_ptr<ShmControl> control,
                std::shared_ptr<Connection> grpc)
      : peer_(std::move(peer)), first_(std::move(control)), grpc_(std::move(grpc)) {
    idle_.push_back(first_);
  }

  absl::StatusOr<std::shared_ptr<ShmControl>> OpenControl();

  const std::shared_ptr<ShmPeer> peer_;
  const std::shared_ptr<ShmControl> first_;  // Tells whether the server is there.
  const std::shared_ptr<Connection> grpc_;
  base::Mutex mutex_;
  // For priorities; one for each thread that changes some at the same time.
  std::vector<std::shared_ptr<ShmControl>> idle_ ABSL_GUARDED_BY(mutex_);
  // For stacked items, likewise.
  std::vector<std::unique_ptr<ShmRowSender>> idle_senders_ ABSL_GUARDED_BY(mutex_);
};

// A stream that has ended already: reports so in a thread of its own.
std::unique_ptr<writer::InsertStream> NewEndedInsertStream(absl::Status status,
                                                           writer::InsertStreamEvents events);

}  // namespace gear_reverb::client
