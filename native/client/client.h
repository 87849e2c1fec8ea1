// A client of one server: picks the way of the data, remembers table signatures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "native/base/mutex.h"
#include "native/client/batch_collector.h"
#include "native/client/connection.h"
#include "native/client/data_plane.h"
#include "native/client/grpc_connection.h"
#include "native/rpc/requests.h"
#include "native/tensor/spec.h"

namespace gear_reverb::client {

// Thread-safe. A server of this process is found by the token it tells over gRPC; the data then
// stays in the process. A server of this host and user tells where shared memory is to be had. When
// such a server is gone, the one at the address is asked anew; otherwise gRPC is used. The
// environment (data_plane.h), as it is when the client is made, can force a way.
class Client final : public writer::InsertStreamFactory,
                     public std::enable_shared_from_this<Client> {
 public:
  explicit Client(std::string address)
      : address_(std::move(address)),
        plane_(DataPlaneOfEnvironment()),
        grpc_(std::make_shared<GrpcConnection>(address_)) {}

  const std::string& address() const { return address_; }

  // May ask the server for its token, which takes until `deadline` at most. FAILED_PRECONDITION
  // in a forked child, and where a forced way cannot be had; then also UNAVAILABLE or
  // DEADLINE_EXCEEDED without a server. INVALID_ARGUMENT if the environment forces nonsense.
  absl::StatusOr<std::shared_ptr<Connection>> GetConnection(
      absl::Time deadline = absl::InfiniteFuture());

  // The way that the last GetConnection found, if it is still there; empty if none is known.
  std::string KnownDataPlane();

  // The way that GetConnection finds within a second.
  absl::StatusOr<std::shared_ptr<writer::InsertStreamFactory>> Reach() override;
  // Over the way that GetConnection would find without asking; else the stream has ended already.
  std::unique_ptr<writer::InsertStream> OpenInsertStream(
      writer::InsertStreamEvents events) override;

  // The table's signature, null if it has none; asked of the server once. NOT_FOUND for an
  // unknown table, DEADLINE_EXCEEDED.
  absl::StatusOr<std::shared_ptr<const tensor::Signature>> GetSignature(
      const std::string& table, absl::Time deadline = absl::InfiniteFuture());
  // Whether priorities of the table, which GetSignature has found, may be negative.
  bool TakesNegative(const std::string& table);

  // One batch, over a stream that stays open for the next call with the same table (one for each
  // thread that calls at the same time). Errors as of BatchCollector::Next.
  absl::StatusOr<BatchPtr> SampleBatch(const std::string& table, const BatchRequest& request,
                                       absl::Time deadline);
  // For the small arrays that go with those batches.
  batch::BufferPool& side_buffers() { return *side_buffers_; }

 private:
  absl::Status FetchSignatures(absl::Time deadline);
  // The way to the server that answered so, null where only gRPC is left.
  absl::StatusOr<std::shared_ptr<Connection>> Choose(
      const absl::StatusOr<rpc::HelloResponse>& hello, DataPlane plane, absl::Time deadline);

  const std::string address_;
  const absl::StatusOr<DataPlane> plane_;
  const std::shared_ptr<GrpcConnection> grpc_;
  const std::shared_ptr<batch::BufferPool> side_buffers_ = batch::BufferPool::Create(/*kept=*/4);

  base::Mutex mutex_;
  std::shared_ptr<Connection> local_ ABSL_GUARDED_BY(mutex_);
  // Set once the server has been asked: it is none of the first so many services of this process,
  // `local_` excepted.
  std::optional<uint64_t> services_asked_for_ ABSL_GUARDED_BY(mutex_);
  std::string refused_token_ ABSL_GUARDED_BY(mutex_);  // Of a server that cannot share memory.
  absl::flat_hash_map<std::string, std::shared_ptr<const tensor::Signature>> signatures_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> weighted_tables_ ABSL_GUARDED_BY(mutex_);
  // By table; those that no call uses. Last, so that they end first.
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<BatchCollector>>> idle_collectors_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace gear_reverb::client
