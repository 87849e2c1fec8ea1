// Keys of inserted items, as runs of keys that follow each other: those of a batch do.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gear_reverb::shm {

struct KeyRun {
  uint64_t first;  // After the largest key comes 0.
  uint64_t count;
};

// In the order in which they were added. Thread-compatible.
class KeyRuns {
 public:
  void Add(uint64_t key) {
    if (!runs_.empty() && key == runs_.back().first + runs_.back().count) {
      ++runs_.back().count;
    } else {
      runs_.push_back({key, 1});
    }
  }
  bool empty() const { return runs_.empty(); }
  // The body of kConfirmed; borrowed.
  absl::string_view body() const {
    return {reinterpret_cast<const char*>(runs_.data()), runs_.size() * sizeof(KeyRun)};
  }

 private:
  std::vector<KeyRun> runs_;
};

// The keys of a kConfirmed body, `most` at most. INVALID_ARGUMENT for more, or a body that is not
// runs of one key or more each.
absl::StatusOr<std::vector<uint64_t>> DecodeKeyRuns(absl::string_view body, uint64_t most);

}  // namespace gear_reverb::shm
