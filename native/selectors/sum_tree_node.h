// The arithmetic inside one node of the sum tree: sixteen children, as four columns of four.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gear_reverb::selectors {

// Children 0 … 15; column q holds the children q, q + 4, q + 8, q + 12. Cumulative sums go through
// the columns first to last and down each column. (Sixteen was measured against 8 and 32: a
// level is two cache lines, and the columns are added as vectors.)
//
// Sums are associated so that every cumulative sum is monotone under rounding and the last one
// equals NodeSum exactly. Hence for 0 <= target < NodeSum a child is always found, and it is one
// that raised the cumulative sum, so its value is positive.
inline double PairwiseSum(double a, double b, double c, double d) { return (a + b) + (c + d); }

struct ColumnSums {
  double column[4];
};

inline ColumnSums SumColumns(const double* child) {
  ColumnSums sums;
  for (size_t q = 0; q < 4; ++q) {
    sums.column[q] = PairwiseSum(child[q], child[q + 4], child[q + 8], child[q + 12]);
  }
  return sums;
}

inline double NodeSum(const double* child) {
  const ColumnSums sums = SumColumns(child);
  return PairwiseSum(sums.column[0], sums.column[1], sums.column[2], sums.column[3]);
}

// The largest double below the positive, finite `x`.
inline double Below(double x) { return std::bit_cast<double>(std::bit_cast<uint64_t>(x) - 1); }

// Which of four values the cumulative sum passes `target` in, and what is left of the target.
struct Step {
  size_t index;
  double target;  // In [0, value[index]).
};

inline Step StepAmongFour(double a, double b, double c, double d, double target) {
  const double end0 = a;
  const double end1 = a + b;
  const double end2 = end1 + c;
  const size_t index = size_t{target >= end0} + size_t{target >= end1} + size_t{target >= end2};
  const double before[4] = {0.0, end0, end1, end2};
  const double value[4] = {a, b, c, d};
  // Rounding may leave as much as the value itself, which would be past its end.
  const double rest = target - before[index];
  const double most = Below(value[index]);
  return {index, rest < most ? rest : most};
}

// The child in which the cumulative sum passes `target`, for 0 <= target < NodeSum(child).
inline Step FindChild(const double* child, double target) {
  const ColumnSums sums = SumColumns(child);
  const double* const t = sums.column;
  const Step column = StepAmongFour(t[0], t[1], t[2], t[3], target);
  const double* const first = child + column.index;
  const Step row = StepAmongFour(first[0], first[4], first[8], first[12], column.target);
  return {column.index + 4 * row.index, row.target};
}

}  // namespace gear_reverb::selectors
