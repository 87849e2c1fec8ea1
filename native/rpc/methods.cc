#include "native/rpc/methods.h"

namespace gear_reverb::rpc {
namespace {

// gRPC drops a status whose metadata are larger than 8 KiB: the peer then sees another error.
constexpr size_t kMaxReasonBytes = 6000;
constexpr char kCut[] = " [...]";

// `reason`, cut where it would take more than kMaxReasonBytes as gRPC encodes it.
std::string Bounded(absl::string_view reason) {
  size_t bytes = 0;
  for (size_t i = 0; i < reason.size(); ++i) {
    const char c = reason[i];
    bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
    if (bytes <= kMaxReasonBytes) continue;
    while (i > 0 && (reason[i] & 0xc0) == 0x80) --i;  // Not within a character of UTF-8.
    return std::string(reason.substr(0, i)) + kCut;
  }
  return std::string(reason);
}

}  // namespace

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
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Bounded(status.message()));
}

}  // namespace gear_reverb::rpc
