#include "native/client/inproc_connection.h"

#include <utility>

#include "native/base/status.h"
#include "native/client/inproc_streams.h"
#include "native/rpc/table_info_codec.h"

namespace gear_reverb::client {

absl::Status InprocConnection::CheckRunning() const {
  if (usable()) return absl::OkStatus();
  return absl::UnavailableError("The server has been stopped.");
}

std::unique_ptr<writer::InsertStream> InprocConnection::OpenInsertStream(
    writer::InsertStreamEvents events) {
  return NewInprocInsertStream(service_, std::move(events));
}

absl::StatusOr<std::unique_ptr<SampleStream>> InprocConnection::OpenSampleStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  GR_RETURN_IF_ERROR(CheckRunning());
  GR_ASSIGN_OR_RETURN(auto found, service_->FindTable(table));
  return NewInprocSampleStream(service_, std::move(found), rate_limiter_timeout);
}

absl::StatusOr<std::unique_ptr<BatchStream>> InprocConnection::OpenBatchStream(
    const std::string& table, absl::Duration rate_limiter_timeout) {
  GR_RETURN_IF_ERROR(CheckRunning());
  GR_ASSIGN_OR_RETURN(auto found, service_->FindTable(table));
  return NewInprocBatchStream(service_, std::move(found), rate_limiter_timeout);
}

absl::Status InprocConnection::ReportUnused(const std::string& table, int64_t n) {
  return service_->ReportUnused(table, n);
}

absl::Status InprocConnection::MutatePriorities(const std::string& table,
                                                absl::Span<const table::KeyWithPriority> updates,
                                                absl::Span<const uint64_t> delete_keys,
                                                absl::Time /*deadline*/) {
  GR_RETURN_IF_ERROR(CheckRunning());
  return service_->MutatePriorities(table, updates, delete_keys);
}

absl::Status InprocConnection::Reset(const std::string& table, absl::Time /*deadline*/) {
  GR_RETURN_IF_ERROR(CheckRunning());
  return service_->Reset(table);
}

absl::StatusOr<std::string> InprocConnection::Checkpoint(absl::Time /*deadline*/) {
  GR_RETURN_IF_ERROR(CheckRunning());
  return service_->Checkpoint();
}

absl::StatusOr<std::vector<std::string>> InprocConnection::ServerInfo(absl::Time) {
  GR_RETURN_IF_ERROR(CheckRunning());
  std::vector<std::string> infos;
  for (const auto& table : service_->tables()) {
    infos.push_back(rpc::EncodeTableInfo(table->info()).TakeString());
  }
  return infos;
}

}  // namespace gear_reverb::client
