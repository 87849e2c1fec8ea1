// The streams to a server over shared memory.
#pragma once

#include <memory>
#include <string>

#include "native/client/connection.h"
#include "native/client/shm_control.h"

namespace gear_reverb::client {

// RESOURCE_EXHAUSTED without memory for a ring or a descriptor, UNAVAILABLE without a server.
absl::StatusOr<std::unique_ptr<writer::InsertStream>> NewShmInsertStream(
    std::shared_ptr<ShmPeer> peer, writer::InsertStreamEvents events);

std::unique_ptr<SampleStream> NewShmSampleStream(std::shared_ptr<ShmControl> control,
                                                 const std::string& table,
                                                 absl::Duration rate_limiter_timeout);
std::unique_ptr<BatchStream> NewShmBatchStream(std::shared_ptr<ShmControl> control,
                                               const std::string& table,
                                               absl::Duration rate_limiter_timeout);

}  // namespace gear_reverb::client
