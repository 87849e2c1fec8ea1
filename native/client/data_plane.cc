#include "native/client/data_plane.h"

#include <cstdlib>

#include "native/base/status.h"

namespace gear_reverb::client {

absl::StatusOr<DataPlane> DataPlaneOfEnvironment() {
  const char* value = std::getenv(kDataPlaneVariable);
  const std::string text = value == nullptr ? "" : value;
  if (text.empty()) return DataPlane::kAuto;
  if (text == "in-process") return DataPlane::kInProcess;
  if (text == "shared-memory") return DataPlane::kSharedMemory;
  if (text == "grpc") return DataPlane::kGrpc;
  return base::InvalidArgument(kDataPlaneVariable, " is '", text,
                               "'; it must be in-process, shared-memory or grpc.");
}

}  // namespace gear_reverb::client
