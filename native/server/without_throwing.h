// What gRPC's threads run must not throw.
#pragma once

#include <exception>
#include <new>
#include <system_error>

#include "absl/status/status.h"
#include "native/base/status.h"

namespace gear_reverb::server {

// What `handle` returns; RESOURCE_EXHAUSTED where there is no memory, or no thread, for it.
template <typename Handle>
auto WithoutThrowing(Handle handle) -> decltype(handle()) {
  try {
    return handle();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("The server has no memory for this call.");
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(error.what());
  } catch (const std::exception& error) {
    return base::Internal(error.what());
  }
}

}  // namespace gear_reverb::server
