// Numbers that need no second look: most priorities are neither infinite nor negative.
#pragma once

#include <limits>

#include "absl/types/span.h"

namespace gear_reverb::base {

inline bool IsFiniteNotNegative(double x) {  // Not NaN either.
  return x >= 0 && x <= std::numeric_limits<double>::max();
}

inline bool AreFiniteNotNegative(absl::Span<const double> all) {
  bool are = true;
  for (const double x : all) are &= IsFiniteNotNegative(x);  // Without a branch for each.
  return are;
}

}  // namespace gear_reverb::base
