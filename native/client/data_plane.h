// The way that data is to take, as the environment says.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace gear_reverb::client {

inline constexpr char kDataPlaneVariable[] = "GEAR_REVERB_DATA_PLANE";

// kAuto: the best that can be had.
enum class DataPlane { kAuto, kInProcess, kSharedMemory, kGrpc };

// Of kDataPlaneVariable: "in-process", "shared-memory", "grpc", or nothing. INVALID_ARGUMENT for
// anything else.
absl::StatusOr<DataPlane> DataPlaneOfEnvironment();

}  // namespace gear_reverb::client
