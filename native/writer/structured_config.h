// What a StructuredWriter inserts, and when: one item's pattern, conditions and priority.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gear_reverb::writer {

// A column of the item: `count` steps of a source column, `step` apart, of which the oldest is
// `first` steps back; 1 is the newest step.
struct PatternNode {
  int64_t column = 0;
  int64_t first = 1;
  int64_t count = 1;
  int64_t step = 1;
  bool squeeze = false;
};

struct PatternCondition {
  enum class Left { kStepIndex, kStepsSinceApplied, kBufferLength, kData };
  enum class Compare { kEqual, kGreaterEqual, kModuloEqual };

  Left left = Left::kStepIndex;
  int64_t column = 0;  // kData: the value of this source column in the newest step.
  Compare compare = Compare::kEqual;
  int64_t value = 0;
  int64_t modulus = 1;  // kModuloEqual: `left % modulus == value`, as C++ divides.
  bool inverse = false;

  // Whether the condition holds for its left side's value.
  bool Holds(int64_t left_value) const {
    return (compare == Compare::kEqual          ? left_value == value
            : compare == Compare::kGreaterEqual ? left_value >= value
                                                : left_value % modulus == value) != inverse;
  }
};

struct PatternPriority {
  enum class Kind { kMissing, kConstant, kTdError };

  Kind kind = Kind::kMissing;
  double value = 0;    // The constant; of kTdError the weight of the maximum against the mean.
  int64_t column = 0;  // kTdError: of the item's columns, the last one of this source column.
};

struct StructuredConfig {
  std::string table;
  std::vector<PatternNode> nodes;
  std::vector<PatternCondition> conditions;
  // Applied when the episode ends rather than after each append.
  bool at_end_of_episode = false;
  PatternPriority priority;
};

// INVALID_ARGUMENT unless there are nodes, all numbers are in range, and squeezed nodes are one
// step.
absl::Status CheckStructuredConfig(const StructuredConfig& config);

}  // namespace gear_reverb::writer
