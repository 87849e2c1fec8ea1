// The two streaming methods over gRPC.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "native/client/connection.h"
#include "native/rpc/chunk_codec.h"

namespace gear_reverb::client {

std::unique_ptr<writer::InsertStream> NewGrpcInsertStream(std::shared_ptr<grpc::GenericStub> stub,
                                                          rpc::Compression compression,
                                                          writer::InsertStreamEvents events);

std::unique_ptr<SampleStream> NewGrpcSampleStream(std::shared_ptr<grpc::GenericStub> stub,
                                                  const std::string& table,
                                                  absl::Duration rate_limiter_timeout);

}  // namespace gear_reverb::client
