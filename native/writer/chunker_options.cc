#include "native/writer/chunker_options.h"

#include <cmath>
#include <limits>

#include "native/base/status.h"

namespace gear_reverb::writer {

absl::Status CheckChunkerOptions(const ChunkerOptions& options) {
  if (options.num_keep_alive_refs <= 0) {
    return base::InvalidArgument("num_keep_alive_refs must be > 0 but got ",
                                 options.num_keep_alive_refs, ".");
  }
  if (options.num_keep_alive_refs > std::numeric_limits<int32_t>::max()) {
    return base::InvalidArgument("num_keep_alive_refs must be < 2^31 but got ",
                                 options.num_keep_alive_refs, ".");
  }
  if (options.auto_tuned) {
    if (!std::isfinite(options.throughput_weight) || options.throughput_weight < 0) {
      return base::InvalidArgument("throughput_weight must be finite and >= 0 but got ",
                                   options.throughput_weight, ".");
    }
    return absl::OkStatus();
  }
  if (options.max_chunk_length <= 0) {
    return base::InvalidArgument("max_chunk_length must be > 0 but got ", options.max_chunk_length,
                                 ".");
  }
  if (options.max_chunk_length > options.num_keep_alive_refs) {
    return base::InvalidArgument("num_keep_alive_refs (", options.num_keep_alive_refs,
                                 ") must be >= max_chunk_length (", options.max_chunk_length, ").");
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::writer
