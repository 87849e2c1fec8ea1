#include "native/checkpoint/fit.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "native/base/status.h"

namespace gear_reverb::checkpoint {
namespace {

absl::Status CheckFits(const table::TableSnapshot& snapshot, const table::TableInfo& table,
                       const SameSignature& same_signature) {
  const auto misfit = [&](const auto&... parts) {
    return base::FailedPrecondition("The checkpoint does not fit table '", table.name,
                                    "': ", parts...);
  };
  if (table.current_size > 0) {
    return misfit("current_size: the table holds ", table.current_size, " items already.");
  }
  if (!table.signature.empty() && !same_signature(table.signature, snapshot.info.signature)) {
    return misfit("signature: that of the table is not that of the checkpoint",
                  snapshot.info.signature.empty() ? ", which has none." : ".");
  }
  const int64_t items = snapshot.items.size();
  if (items > table.max_size) {
    return misfit("max_size: ", items, " items do not fit ", table.max_size, ".");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<table::Table>>> MatchTables(
    absl::Span<const table::TableSnapshot> snapshots,
    absl::Span<const std::shared_ptr<table::Table>> tables, const SameSignature& same_signature) {
  std::vector<std::shared_ptr<table::Table>> matched;
  for (const table::TableSnapshot& snapshot : snapshots) {
    const std::string& name = snapshot.info.name;
    const auto found = std::find_if(tables.begin(), tables.end(),
                                    [&](const auto& table) { return table->name() == name; });
    if (found == tables.end()) {
      const auto quote = [](std::string* out, const auto& table) {
        absl::StrAppend(out, "'", table->name(), "'");
      };
      return base::InvalidArgument(
          "Trying to load table '", name,
          "' but table was not found in provided list of tables. Available tables: [",
          absl::StrJoin(tables, ", ", quote), "]");
    }
    GR_RETURN_IF_ERROR(CheckFits(snapshot, (*found)->info(), same_signature));
    matched.push_back(*found);
  }
  return matched;
}

std::vector<std::string> DescribeDifferences(const table::TableInfo& table,
                                             const table::TableInfo& saved) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* field, const auto& now, const auto& then) {
    const std::string now_text = absl::StrCat(now), then_text = absl::StrCat(then);
    if (now_text == then_text) return;
    lines.push_back(absl::StrCat("Table ", table.name, ": ", field, " is ", now_text,
                                 " (in the checkpoint: ", then_text, ")"));
  };
  compare("sampler", selectors::ToString(table.sampler), selectors::ToString(saved.sampler));
  compare("remover", selectors::ToString(table.remover), selectors::ToString(saved.remover));
  compare("max_size", table.max_size, saved.max_size);
  compare("max_times_sampled", table.max_times_sampled, saved.max_times_sampled);
  const auto& now = table.rate_limiter;
  const auto& then = saved.rate_limiter;
  compare("samples_per_insert", now.samples_per_insert, then.samples_per_insert);
  compare("min_size_to_sample", now.min_size_to_sample, then.min_size_to_sample);
  compare("min_diff", now.min_diff, then.min_diff);
  compare("max_diff", now.max_diff, then.max_diff);
  return lines;
}

}  // namespace gear_reverb::checkpoint
