// Paths of the RPC methods, and how statuses cross gRPC.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace gear_reverb::rpc {

namespace method {
inline constexpr char kCheckpoint[] = "/deepmind.reverb.ReverbService/Checkpoint";
inline constexpr char kInsertStream[] = "/deepmind.reverb.ReverbService/InsertStream";
inline constexpr char kMutatePriorities[] = "/deepmind.reverb.ReverbService/MutatePriorities";
inline constexpr char kReset[] = "/deepmind.reverb.ReverbService/Reset";
inline constexpr char kSampleStream[] = "/deepmind.reverb.ReverbService/SampleStream";
inline constexpr char kServerInfo[] = "/deepmind.reverb.ReverbService/ServerInfo";
inline constexpr char kInitializeConnection[] =
    "/deepmind.reverb.ReverbService/InitializeConnection";
// Ours: tells the server's token, by which a client in the same process finds the server.
inline constexpr char kHello[] = "/gear_reverb.v1.Gear/Hello";
// Ours: samples that were drawn ahead and never used.
inline constexpr char kReportUnused[] = "/gear_reverb.v1.Gear/ReportUnused";
}  // namespace method

// Code by code; reasons of more than some 6000 bytes are cut, or they would not arrive. UNKNOWN
// "Stream removed" means that the server went away: UNAVAILABLE.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace gear_reverb::rpc
