// A server reached over gRPC: ours or Reverb's.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "native/client/connection.h"
#include "native/rpc/chunk_codec.h"
#include "native/rpc/message_writer.h"
#include "native/rpc/parse.h"
#include "native/rpc/requests.h"

namespace gear_reverb::client {

class GrpcConnection final : public Connection {
 public:
  explicit GrpcConnection(const std::string& address);

  std::string data_plane() const override { return "grpc"; }
  bool usable() const override { return true; }

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

  // UNIMPLEMENTED if the server is not one of ours.
  absl::StatusOr<rpc::HelloResponse> Hello(absl::Time deadline);

 private:
  // Waits for a connection until `deadline` or, if that is infinite, for ConnectPatience().
  absl::Status WaitForConnection(absl::Time deadline);
  absl::StatusOr<rpc::FlatMessage> Call(const char* method, rpc::MessageWriter request,
                                        absl::Time deadline);

  const std::string address_;
  const rpc::Compression compression_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<grpc::GenericStub> stub_;
};

}  // namespace gear_reverb::client
