#include "native/rpc/methods.h"

namespace gear_reverb::rpc {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code == absl::StatusCode::kUnknown && status.error_message() == "Stream removed") {
    code = absl::StatusCode::kUnavailable;
  }
  return absl::Status(code, status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace gear_reverb::rpc
