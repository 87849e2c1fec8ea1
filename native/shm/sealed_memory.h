// Memory that processes share by descriptor, and may trust to keep its size.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "native/shm/unique_fd.h"

namespace gear_reverb::shm {

// A memfd of `bytes`, sealed against any change of its size. RESOURCE_EXHAUSTED.
absl::StatusOr<UniqueFd> NewSealedMemory(const char* name, size_t bytes);

// The size of memory received from another process. INVALID_ARGUMENT unless its size is sealed and
// its pages are ordinary ones, so that no access within the size can fault.
absl::StatusOr<size_t> SealedBytes(int fd);

// The same memory, read-only. RESOURCE_EXHAUSTED where /proc is missing or descriptors are.
absl::StatusOr<UniqueFd> OpenReadOnly(int fd);

}  // namespace gear_reverb::shm
