// A client of one server: picks the way of the data, remembers table signatures.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/client/connection.h"
#include "native/client/grpc_connection.h"
#include "native/tensor/spec.h"

namespace gear_reverb::client {

// Thread-safe. A server of this process is found by the token it tells over gRPC; the data then
// stays in the process. When that server stops, gRPC is used again.
class Client final : public writer::InsertStreamFactory,
                     public std::enable_shared_from_this<Client> {
 public:
  explicit Client(std::string address)
      : address_(std::move(address)), grpc_(std::make_shared<GrpcConnection>(address_)) {}

  const std::string& address() const { return address_; }

  // May ask the server for its token, which takes until `deadline` at most. FAILED_PRECONDITION
  // in a forked child.
  absl::StatusOr<std::shared_ptr<Connection>> GetConnection(
      absl::Time deadline = absl::InfiniteFuture());

  // Over the way that the last GetConnection found, if it is still there.
  std::unique_ptr<writer::InsertStream> OpenInsertStream(
      writer::InsertStreamEvents events) override;

  // The table's signature, null if it has none; asked of the server once. NOT_FOUND for an
  // unknown table.
  absl::StatusOr<std::shared_ptr<const tensor::Signature>> GetSignature(const std::string& table);

 private:
  absl::Status FetchSignatures();

  const std::string address_;
  const std::shared_ptr<GrpcConnection> grpc_;

  base::Mutex mutex_;
  std::shared_ptr<Connection> local_ ABSL_GUARDED_BY(mutex_);
  // The server is none of the first so many services of this process, `local_` excepted.
  uint64_t services_asked_for_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<const tensor::Signature>> signatures_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::client
