// A server in this very process: no wire, no copies but the one into its arena.
#pragma once

#include <memory>
#include <string>

#include "native/client/connection.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {

class InprocConnection final : public Connection {
 public:
  explicit InprocConnection(std::shared_ptr<service::ReplayService> service)
      : service_(std::move(service)) {}

  std::shared_ptr<service::ReplayService> local_service() const override { return service_; }
  std::shared_ptr<device::SegmentSource> memory() override {
    return std::make_shared<device::ArenaSource>(service_->shared_arena());
  }
  std::string data_plane() const override { return "in-process"; }
  bool usable() const override { return !service_->stopped(); }

  std::unique_ptr<writer::InsertStream> OpenInsertStream(
      writer::InsertStreamEvents events) override;
  absl::StatusOr<std::unique_ptr<SampleStream>> OpenSampleStream(
      const std::string& table, absl::Duration rate_limiter_timeout) override;
  absl::StatusOr<std::unique_ptr<BatchStream>> OpenBatchStream(
      const std::string& table, absl::Duration rate_limiter_timeout) override;
  absl::Status ReportUnused(const std::string& table, int64_t n) override;
  absl::Status MutatePriorities(const std::string& table,
                                absl::Span<const table::KeyWithPriority> updates,
                                absl::Span<const uint64_t> delete_keys,
                                absl::Time deadline) override;
  absl::Status Reset(const std::string& table, absl::Time deadline) override;
  absl::StatusOr<std::string> Checkpoint(absl::Time deadline) override;
  absl::StatusOr<std::vector<std::string>> ServerInfo(absl::Time deadline) override;

 private:
  absl::Status CheckRunning() const;

  const std::shared_ptr<service::ReplayService> service_;
};

}  // namespace gear_reverb::client
