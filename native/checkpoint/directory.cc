#include "native/checkpoint/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "native/base/log.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/checkpoint/block_file.h"

namespace gear_reverb::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E6S";
constexpr char kTimeSuffix[] = "+00:00";
constexpr char kUnpublishedPrefix[] = ".tmp-";

std::string NameOf(absl::Time time) {
  return absl::StrCat(absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone()), kTimeSuffix);
}

// Whether `name` is a checkpoint's, and of when.
bool ParseName(absl::string_view name, absl::Time* time) {
  std::string error;
  return absl::ConsumeSuffix(&name, kTimeSuffix) &&
         absl::ParseTime(kTimeFormat, name, absl::UTCTimeZone(), time, &error) &&
         NameOf(*time) == absl::StrCat(name, kTimeSuffix);
}

// The same of dm-reverb's names.
bool ParseForeignName(absl::string_view name, absl::Time* time) {
  std::string error;
  constexpr size_t kLeastBytes = 25;  // 2026-11-20T22:17:17+00:00
  return name.size() >= kLeastBytes && name[10] == 'T' &&
         (name[name.size() - 6] == '+' || name[name.size() - 6] == '-') &&
         absl::ParseTime(absl::RFC3339_full, name, time, &error) && *time > absl::UnixEpoch() &&
         *time < absl::InfiniteFuture();
}

absl::Status Error(const std::error_code& error, absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat("Cannot ", what, " ", path));
}

absl::StatusOr<std::vector<std::string>> ListNames(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(root, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  while (!error && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return Error(error, "list", root);
  return names;
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("Cannot open ", path));
  const File file(fd);
  // EINVAL: a file system that has nothing to flush.
  if (fsync(fd) != 0 && errno != EINVAL) {
    return absl::ErrnoToStatus(errno, absl::StrCat("Cannot flush ", path));
  }
  return absl::OkStatus();
}

// Makes `path` and what is missing above it, durably.
absl::Status MakeDirectories(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return absl::OkStatus();
  if (path.has_parent_path() && path.parent_path() != path) {
    GR_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  }
  fs::create_directory(path, error);
  if (error) return Error(error, "make", path.string());
  return SyncDirectory(path.parent_path().string());
}

void RemoveTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) base::Log(base::LogLevel::kWarning, Error(error, "remove", path).ToString());
}

// Whether the process that was writing `directory` is gone: its lock is. (It takes the lock just
// after it has made the file; a minute is more than that takes.)
bool IsAbandoned(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kFileName);
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  if (error || fs::file_time_type::clock::now() - changed < std::chrono::minutes(1)) return false;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const File file(fd);
  return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

bool IsCheckpoint(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(absl::StrCat(path, "/", kFileName), error);
}

absl::StatusOr<std::vector<std::string>> ListCheckpoints(
    const std::string& root, const std::function<bool(const std::string& path)>& is_foreign) {
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(root));
  std::vector<std::pair<absl::Time, std::string>> found;
  for (const std::string& name : names) {
    absl::Time time;
    std::string path = absl::StrCat(root, "/", name);
    if (ParseName(name, &time) ||
        (is_foreign != nullptr && ParseForeignName(name, &time) && is_foreign(path))) {
      found.emplace_back(time, std::move(path));
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

absl::Status RemoveOldCheckpoints(const std::string& root, int64_t keep) {
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListCheckpoints(root));
  int64_t own = 0;
  for (const std::string& path : paths) {
    if (IsCheckpoint(path) && ++own > keep) RemoveTree(path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<UnpublishedCheckpoint>> UnpublishedCheckpoint::Create(
    const std::string& root) {
  GR_RETURN_IF_ERROR(MakeDirectories(root));
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(root));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(root, "/", name);
    if (absl::StartsWith(name, kUnpublishedPrefix) && IsAbandoned(path)) {
      base::Log(base::LogLevel::kWarning,
                absl::StrCat("Removing ", path, ", a checkpoint that was never finished."));
      RemoveTree(path);
    }
  }
  const std::string path = absl::StrCat(root, "/", kUnpublishedPrefix, NameOf(absl::Now()), "-",
                                        absl::Hex(base::RandomUint64(), absl::kZeroPad16));
  std::error_code error;
  if (!fs::create_directory(path, error)) return Error(error, "make", path);
  return std::unique_ptr<UnpublishedCheckpoint>(new UnpublishedCheckpoint(root, path));
}

UnpublishedCheckpoint::~UnpublishedCheckpoint() {
  if (!published_) RemoveTree(path_);
}

std::string UnpublishedCheckpoint::file() const { return absl::StrCat(path_, "/", kFileName); }

absl::StatusOr<std::string> UnpublishedCheckpoint::Publish(absl::Time now) {
  GR_RETURN_IF_ERROR(SyncDirectory(path_));
  absl::Time time = absl::FromUnixMicros(absl::ToUnixMicros(now));
  GR_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(root_));
  for (const std::string& name : names) {
    absl::Time other;
    if (ParseName(name, &other)) time = std::max(time, other + absl::Microseconds(1));
  }
  while (true) {
    const std::string path = absl::StrCat(root_, "/", NameOf(time));
    if (std::rename(path_.c_str(), path.c_str()) == 0) {
      published_ = true;
      GR_RETURN_IF_ERROR(SyncDirectory(root_));
      return path;
    }
    // Another process was faster.
    if (errno != EEXIST && errno != ENOTEMPTY) {
      return absl::ErrnoToStatus(errno, absl::StrCat("Cannot name ", path));
    }
    time += absl::Microseconds(1);
  }
}

}  // namespace gear_reverb::checkpoint
