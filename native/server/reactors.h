// The handlers of the RPC methods. Each owns itself until its call is over.
#pragma once

#include <memory>

#include "grpcpp/generic/async_generic_service.h"
#include "native/server/open_calls.h"
#include "native/service/replay_service.h"

namespace gear_reverb::server {

using ServicePtr = std::shared_ptr<service::ReplayService>;

grpc::ServerGenericBidiReactor* NewInsertReactor(ServicePtr service, OpenCalls* calls);
// `near`: the client is on this host, so that compression would be a waste.
grpc::ServerGenericBidiReactor* NewSampleReactor(ServicePtr service, OpenCalls* calls, bool near);

// Answers one request with one response. Null for an unknown method. `socket_name`: where shared
// memory is to be had, empty for nowhere; outlives the call.
grpc::ServerGenericBidiReactor* NewUnaryReactor(ServicePtr service, OpenCalls* calls,
                                                const std::string& method,
                                                const std::string& socket_name);
// Ends the call with `status` at once.
grpc::ServerGenericBidiReactor* NewFailingReactor(grpc::Status status);

}  // namespace gear_reverb::server
