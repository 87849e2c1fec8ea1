#include "native/shm/handshake.h"

#include "native/base/status.h"
#include "native/shm/encoding.h"

namespace gear_reverb::shm {
namespace {

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

std::string MakeHello(Role role, absl::string_view token) {
  std::string body;
  Encoder encoder(&body);
  encoder.Put(kMagic);
  encoder.Put(kVersion);
  encoder.Put(static_cast<uint32_t>(role));
  encoder.PutString(token);
  return MakeFrame(MessageType::kHello, body);
}

absl::StatusOr<Role> CheckHello(const Frame& frame, absl::string_view token) {
  Decoder decoder(frame.body);
  if (frame.type != MessageType::kHello || decoder.Get<uint64_t>() != kMagic) {
    return base::InvalidArgument("A connection begins with a greeting.");
  }
  const auto version = decoder.Get<uint32_t>();
  if (version != kVersion) {
    return base::FailedPrecondition("The client speaks version ", version, ", the server ",
                                    kVersion, ".");
  }
  const auto role = static_cast<Role>(decoder.Get<uint32_t>());
  const absl::string_view given = decoder.GetString();
  if (!decoder.done()) return base::InvalidArgument("The greeting is malformed.");
  if (!EqualInConstantTime(given, token)) {
    return absl::PermissionDeniedError("The token is not this server's.");
  }
  if (role != Role::kInsert && role != Role::kControl) {
    return base::InvalidArgument("Unknown role ", static_cast<uint32_t>(role), ".");
  }
  return role;
}

std::string MakeWelcome(uint32_t features) {
  std::string body;
  Encoder(&body).Put(features);
  return MakeFrame(MessageType::kWelcome, body);
}

uint32_t DecodeWelcome(absl::string_view body) {
  Decoder decoder(body);
  const auto features = decoder.Get<uint32_t>();
  return decoder.ok() ? features : 0;
}

std::string EncodeStatus(const absl::Status& status) {
  std::string body;
  Encoder encoder(&body);
  encoder.Put(static_cast<int32_t>(status.code()));
  encoder.PutString(status.message());
  return body;
}

absl::Status DecodeStatus(absl::string_view body) {
  Decoder decoder(body);
  const auto code = decoder.Get<int32_t>();
  const absl::string_view text = decoder.GetString();
  if (!decoder.done()) return absl::InternalError("The server sent a malformed status.");
  if (code < 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)) {
    return absl::UnknownError(text);
  }
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

}  // namespace gear_reverb::shm
