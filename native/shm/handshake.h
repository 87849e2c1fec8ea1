// The first messages of a connection, and statuses.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/shm/frames.h"
#include "native/shm/protocol.h"

namespace gear_reverb::shm {

std::string MakeHello(Role role, absl::string_view token);

// What the client wants. INVALID_ARGUMENT for anything but a greeting, FAILED_PRECONDITION for
// another version, PERMISSION_DENIED for another token, in a time that does not tell how far the
// token is right.
absl::StatusOr<Role> CheckHello(const Frame& frame, absl::string_view token);

std::string MakeWelcome(uint32_t features);
// The features in a welcome's body; those that are not known mean nothing.
uint32_t DecodeWelcome(absl::string_view body);

std::string EncodeStatus(const absl::Status& status);
// The status in `body`; INTERNAL if there is none.
absl::Status DecodeStatus(absl::string_view body);

}  // namespace gear_reverb::shm
