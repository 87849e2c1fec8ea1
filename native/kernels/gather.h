// The one place where a batch's bytes are copied: many pieces, from wherever they lie, to one
// buffer. This is the reference on the CPU; a CUDA version has the same meaning.
#pragma once

#include <cstddef>

#include "absl/types/span.h"

namespace gear_reverb::kernels {

struct Copy {
  const std::byte* source;
  std::byte* destination;
  size_t bytes;
};

struct GatherOptions {
  // Threads that copy, the calling one included; 0: GEAR_REVERB_GATHER_THREADS, or as many as the
  // machine has cores, 8 at most. Small gathers use fewer.
  int threads = 0;
};

// Copies all pieces. Sources and destinations may not overlap. Large gathers use several threads,
// and stores that do not read the destination first. Thread-safe; one gather at a time has the
// helping threads.
void Gather(absl::Span<const Copy> copies, const GatherOptions& options = {});

}  // namespace gear_reverb::kernels
