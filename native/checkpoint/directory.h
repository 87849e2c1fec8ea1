// The directories that checkpoints lie in: names that sort by age, and a save that is seen whole or
// not at all.
#pragma once

#include <functional>
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

// The paths of the checkpoints in `root`, newest first; none if there is no such directory. Those
// with dm-reverb's names, which have more digits and may be of any time zone, count where
// `is_foreign` says so.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(
    const std::string& root, const std::function<bool(const std::string& path)>& is_foreign = {});

// Removes all but the `keep` newest checkpoints of our own in `root`.
absl::Status RemoveOldCheckpoints(const std::string& root, int64_t keep);

// A checkpoint that is being written, under a name that readers ignore. Destroyed before Publish
// succeeded, it removes what was written; a killed process's is removed by the next Create.
class UnpublishedCheckpoint {
 public:
  // Makes `root` and its parents if need be.
  static absl::StatusOr<std::unique_ptr<UnpublishedCheckpoint>> Create(const std::string& root);
  ~UnpublishedCheckpoint();

  // What is published, and where in it our own checkpoint goes. All written must be flushed first.
  const std::string& directory() const { return path_; }
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
