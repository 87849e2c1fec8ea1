// How a column's steps are cut into chunks, and how many stay within reach.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace gear_reverb::writer {

// A value. Make one with ConstantChunkerOptions or AutoTunedChunkerOptions; it is checked where it
// is used.
struct ChunkerOptions {
  // The last so many cells of the column can be referenced by new items.
  int64_t num_keep_alive_refs = 1;
  // Steps per chunk; ignored where `auto_tuned`.
  int64_t max_chunk_length = 1;
  // The chunk length follows the items that are created: see chunk_length_tuner.h.
  bool auto_tuned = false;
  double throughput_weight = 1.0;

  friend bool operator==(const ChunkerOptions&, const ChunkerOptions&) = default;
};

inline ChunkerOptions ConstantChunkerOptions(int64_t max_chunk_length,
                                             int64_t num_keep_alive_refs) {
  return {.num_keep_alive_refs = num_keep_alive_refs, .max_chunk_length = max_chunk_length};
}

inline ChunkerOptions AutoTunedChunkerOptions(int64_t num_keep_alive_refs,
                                              double throughput_weight = 1.0) {
  return {.num_keep_alive_refs = num_keep_alive_refs,
          .auto_tuned = true,
          .throughput_weight = throughput_weight};
}

// INVALID_ARGUMENT unless 1 <= max_chunk_length <= num_keep_alive_refs < 2^31 and the weight is
// finite and >= 0.
absl::Status CheckChunkerOptions(const ChunkerOptions& options);

}  // namespace gear_reverb::writer
