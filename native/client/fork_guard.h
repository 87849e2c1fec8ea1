// gRPC's threads do not survive fork(): a child that calls it hangs. This tells such a child.
#pragma once

#include "absl/status/status.h"

namespace gear_reverb::client {

// Notes that this process uses gRPC, as a client or as a server.
void NoteGrpcUse();

// FAILED_PRECONDITION in a process that was forked after NoteGrpcUse; the text says to use spawn.
absl::Status CheckNotForked();

}  // namespace gear_reverb::client
