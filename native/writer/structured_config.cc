#include "native/writer/structured_config.h"

#include <limits>

#include "native/base/status.h"

namespace gear_reverb::writer {
namespace {

constexpr int64_t kMax = std::numeric_limits<int32_t>::max();

bool InRange(int64_t value, int64_t least) { return value >= least && value <= kMax; }

}  // namespace

absl::Status CheckStructuredConfig(const StructuredConfig& config) {
  if (config.table.empty()) return base::InvalidArgument("`table` must not be empty.");
  if (config.nodes.empty()) return base::InvalidArgument("`flat` must not be empty.");
  for (const PatternNode& node : config.nodes) {
    // All are below 2^31 before they are multiplied.
    if (!InRange(node.column, 0) || !InRange(node.first, 1) || !InRange(node.count, 1) ||
        !InRange(node.step, 1) || (node.count - 1) * node.step >= node.first ||
        (node.squeeze && node.count != 1)) {
      return base::InvalidArgument("A pattern takes ", node.count, " steps of column ", node.column,
                                   ", ", node.step, " apart, from ", node.first, " steps back",
                                   node.squeeze ? ", squeezed." : ".");
    }
  }
  for (const PatternCondition& condition : config.conditions) {
    if (condition.modulus < 1) {
      return base::InvalidArgument("`mod_eq.mod` must be > 0 but got ", condition.modulus, ".");
    }
    if (condition.left == PatternCondition::Left::kData && !InRange(condition.column, 0)) {
      return base::InvalidArgument("`flat_source_index` must be >= 0 but got ", condition.column,
                                   ".");
    }
  }
  return absl::OkStatus();
}

}  // namespace gear_reverb::writer
