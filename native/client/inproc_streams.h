// The streams to a server in this process.
#pragma once

#include <memory>

#include "native/client/connection.h"
#include "native/service/replay_service.h"

namespace gear_reverb::client {

std::unique_ptr<writer::InsertStream> NewInprocInsertStream(
    std::shared_ptr<service::ReplayService> service, writer::InsertStreamEvents events);

std::unique_ptr<SampleStream> NewInprocSampleStream(std::shared_ptr<service::ReplayService> service,
                                                    std::shared_ptr<table::Table> table,
                                                    absl::Duration rate_limiter_timeout);

std::unique_ptr<BatchStream> NewInprocBatchStream(std::shared_ptr<service::ReplayService> service,
                                                  std::shared_ptr<table::Table> table,
                                                  absl::Duration rate_limiter_timeout);

}  // namespace gear_reverb::client
