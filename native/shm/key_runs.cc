#include "native/shm/key_runs.h"

#include "native/base/status.h"
#include "native/shm/encoding.h"

namespace gear_reverb::shm {

absl::StatusOr<std::vector<uint64_t>> DecodeKeyRuns(absl::string_view body, uint64_t most) {
  std::vector<uint64_t> keys;
  Decoder decoder(body);
  while (!decoder.done()) {
    const auto run = decoder.Get<KeyRun>();
    if (!decoder.ok() || run.count == 0) {
      return base::InvalidArgument("Keys are not runs of one key or more each.");
    }
    if (run.count > most - keys.size()) {
      return base::InvalidArgument("There are more than ", most, " keys.");
    }
    for (uint64_t i = 0; i < run.count; ++i) keys.push_back(run.first + i);
  }
  return keys;
}

}  // namespace gear_reverb::shm
