#include "native/checkpoint/checkpointer.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "native/base/log.h"
#include "native/base/status.h"
#include "native/checkpoint/checkpoint_file.h"
#include "native/checkpoint/directory.h"
#include "native/checkpoint/fit.h"
#include "native/checkpoint/format.h"

namespace gear_reverb::checkpoint {
namespace {

absl::Status Restore(const Checkpointer::Contents& contents,
                     absl::Span<const std::shared_ptr<table::Table>> tables) {
  const std::vector<table::TableSnapshot>& snapshots = contents.tables;
  const SameSignature same_signature = [&](const std::string& a, const std::string& b) {
    return a == b || (contents.format != nullptr && contents.format->SameSignature(a, b));
  };
  GR_ASSIGN_OR_RETURN(const auto matched, MatchTables(snapshots, tables, same_signature));
  int64_t items = 0;
  for (size_t i = 0; i < matched.size(); ++i) {
    if (absl::Status status = matched[i]->Restore(snapshots[i]); !status.ok()) {
      for (size_t restored = 0; restored < i; ++restored) matched[restored]->Reset();
      return status;
    }
    items += snapshots[i].items.size();
    for (const std::string& line : DescribeDifferences(matched[i]->info(), snapshots[i].info)) {
      base::Log(base::LogLevel::kInfo, line);
    }
  }
  base::Log(base::LogLevel::kInfo, absl::StrCat("Restored ", items, " items of ", matched.size(),
                                                " table(s) from ", contents.path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Checkpointer>> Checkpointer::Create(
    const std::string& path, const std::string& group,
    const std::optional<std::string>& fallback_path, int64_t keep_latest,
    std::vector<std::shared_ptr<const ForeignFormat>> foreign) {
  if (path.empty()) return base::InvalidArgument("The path of checkpoints must not be empty.");
  if (keep_latest < 0) {
    return base::InvalidArgument("keep_latest (", keep_latest, ") must not be negative.");
  }
  return std::shared_ptr<Checkpointer>(
      new Checkpointer(path, group, fallback_path, keep_latest, std::move(foreign)));
}

std::string Checkpointer::Root(const std::string& path) const {
  return group_.empty() ? path : absl::StrCat(path, "/", group_);
}

absl::StatusOr<std::string> Checkpointer::Save(
    absl::Span<const std::shared_ptr<table::Table>> tables) {
  const absl::Time start = absl::Now();
  const std::string root = Root(path_);
  GR_ASSIGN_OR_RETURN(const auto unpublished, UnpublishedCheckpoint::Create(root));
  GR_RETURN_IF_ERROR(WriteCheckpointFile(unpublished->file(), tables));
  GR_ASSIGN_OR_RETURN(const std::string path, unpublished->Publish(start));
  if (keep_latest_ > 0) GR_RETURN_IF_ERROR(RemoveOldCheckpoints(root, keep_latest_));
  base::Log(base::LogLevel::kInfo,
            absl::StrCat("Saved ", path, " in ", absl::FormatDuration(absl::Now() - start)));
  return path;
}

const ForeignFormat* Checkpointer::FormatOf(const std::string& directory) const {
  if (IsCheckpoint(directory)) return nullptr;
  for (const auto& format : foreign_) {
    if (format->Recognizes(directory)) return format.get();
  }
  return nullptr;
}

bool Checkpointer::IsAnyCheckpoint(const std::string& directory) const {
  return IsCheckpoint(directory) || FormatOf(directory) != nullptr;
}

absl::StatusOr<std::vector<std::string>> Checkpointer::Candidates(const std::string& root) const {
  GR_ASSIGN_OR_RETURN(
      std::vector<std::string> paths,
      ListCheckpoints(root, [this](const std::string& path) { return FormatOf(path) != nullptr; }));
  if (IsAnyCheckpoint(root)) paths.push_back(root);
  return paths;
}

absl::StatusOr<Checkpointer::Contents> Checkpointer::ReadLatest(memory::Arena& arena) {
  GR_ASSIGN_OR_RETURN(std::vector<std::string> candidates, Candidates(Root(path_)));
  // Other groups' checkpoints lie in `path_` too, but it may be a checkpoint itself.
  if (!group_.empty() && IsAnyCheckpoint(path_)) candidates.push_back(path_);
  if (candidates.empty() && fallback_path_.has_value()) {
    GR_ASSIGN_OR_RETURN(candidates, Candidates(Root(*fallback_path_)));
    if (candidates.empty()) {
      GR_ASSIGN_OR_RETURN(candidates, Candidates(*fallback_path_));
    }
  }
  absl::Status damage = base::NotFound("There is no checkpoint in ", path_, ".");
  for (const std::string& path : candidates) {
    base::Log(base::LogLevel::kInfo, absl::StrCat("Loading ", path));
    const ForeignFormat* format = FormatOf(path);
    auto snapshots = format == nullptr
                         ? ReadCheckpointFile(absl::StrCat(path, "/", kFileName), arena)
                         : format->Read(path, arena);
    if (snapshots.ok()) return Contents{path, *std::move(snapshots), format};
    if (!absl::IsDataLoss(snapshots.status())) return snapshots.status();
    base::Log(base::LogLevel::kWarning,
              absl::StrCat(snapshots.status().message(), " Trying the checkpoint before it."));
    if (absl::IsNotFound(damage)) damage = snapshots.status();
  }
  return damage;
}

absl::Status Checkpointer::LoadLatest(absl::Span<const std::shared_ptr<table::Table>> tables,
                                      memory::Arena& arena) {
  GR_ASSIGN_OR_RETURN(const Contents contents, ReadLatest(arena));
  return Restore(contents, tables);
}

std::string Checkpointer::DebugString() const {
  return absl::StrCat("Checkpointer(path=", Root(path_), ")");
}

}  // namespace gear_reverb::checkpoint
