// The directories that checkpoints lie in: names that sort by age, and a save that is seen whole or
// not at all.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gear_reverb::checkpoint {

// Whether `path` is a checkpoint's directory.
bool IsCheckpoint(const std::string& path);

// The paths of the checkpoints in `root`, newest first; none if there is no such directory.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(const std::string& root);

// Removes all but the `keep` newest checkpoints in `root`.
absl::Status RemoveOldCheckpoints(const std::string& root, int64_t keep);

// A checkpoint that is being written, under a name that readers ignore. Destroyed before Publish
// succeeded, it removes what was written; a killed process's is removed by the next Create.
class UnpublishedCheckpoint {
 public:
  // Makes `root` and its parents if need be.
  static absl::StatusOr<std::unique_ptr<UnpublishedCheckpoint>> Create(const std::string& root);
  ~UnpublishedCheckpoint();

  // Where to write the file; it must be flushed before Publish.
  std::string file() const;

  // Gives the directory its name: the time `now`, or just after the newest checkpoint in `root` if
  // the clock was set back. Durable when it returns the path.
  absl::StatusOr<std::string> Publish(absl::Time now);

 private:
  UnpublishedCheckpoint(std::string root, std::string path)
      : root_(std::move(root)), path_(std::move(path)) {}

  const std::string root_;
  const std::string path_;
  bool published_ = false;
};

}  // namespace gear_reverb::checkpoint
