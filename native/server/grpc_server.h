// The gRPC face of a ReplayService: Reverb's service and our own on one port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "native/service/replay_service.h"

namespace gear_reverb::server {

struct GrpcServerOptions {
  int port = 0;               // 0: any free port.
  std::string bind_address;   // Empty: all interfaces, IPv6 and IPv4.
  bool shared_memory = true;  // For the processes of this host and user, where it is to be had.
};

// Thread-safe. Runs from Create to Stop.
class GrpcServer {
 public:
  // INVALID_ARGUMENT for a port out of range, UNAVAILABLE if the port cannot be had.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Create(
      std::shared_ptr<service::ReplayService> service, const GrpcServerOptions& options);
  // Stops; does nothing in a forked child, as does Stop.
  ~GrpcServer();

  int port() const;
  service::ReplayService& service() const;

  // Ends every call in progress (UNAVAILABLE) and waits until none is left. Idempotent.
  void Stop();
  // Until Stop has been called or `timeout` has passed; true in the first case.
  bool Wait(absl::Duration timeout);

 private:
  class Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  // Whether this process is a fork of the server's.
  bool foreign() const;

  std::unique_ptr<Impl> impl_;
  const uint64_t generation_;
};

}  // namespace gear_reverb::server
