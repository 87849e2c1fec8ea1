#include "native/rate_limiter/rate_limiter.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "native/base/status.h"

namespace gear_reverb::rate_limiter {
namespace {

// inserts * samples_per_insert - samples, rounded as Reverb rounds it.
double Difference(double inserts, double samples_per_insert, int64_t samples) {
  return inserts * samples_per_insert - static_cast<double>(samples);
}

}  // namespace

absl::StatusOr<RateLimiter> RateLimiter::Create(const RateLimiterOptions& options) {
  if (!(options.samples_per_insert >= 0) || std::isinf(options.samples_per_insert)) {
    return base::InvalidArgument("samples_per_insert (", options.samples_per_insert,
                                 ") must be finite and not negative.");
  }
  if (options.min_size_to_sample < 1) {
    return base::InvalidArgument("min_size_to_sample (", options.min_size_to_sample,
                                 ") must be a positive integer.");
  }
  if (std::isnan(options.min_diff)) return base::InvalidArgument("min_diff must not be NaN.");
  if (std::isnan(options.max_diff)) return base::InvalidArgument("max_diff must not be NaN.");
  if (options.min_diff > options.max_diff) {
    return base::InvalidArgument("min_diff (", options.min_diff, ") must not exceed max_diff (",
                                 options.max_diff, ").");
  }
  return RateLimiter(options);
}

double RateLimiter::DifferenceAfterSamples(int64_t n) const {
  return Difference(static_cast<double>(counts_.inserts), options_.samples_per_insert,
                    counts_.samples) -
         static_cast<double>(n);
}

double RateLimiter::DifferenceAfterInserts(int64_t n) const {
  // The sum of two 64-bit counts may not fit in 64 bits.
  const __int128 inserts = static_cast<__int128>(counts_.inserts) + n;
  return Difference(static_cast<double>(inserts), options_.samples_per_insert, counts_.samples);
}

bool RateLimiter::CanSample(int64_t n) const {
  return size() >= options_.min_size_to_sample && DifferenceAfterSamples(n) >= options_.min_diff;
}

bool RateLimiter::CanInsert(int64_t n) const {
  return static_cast<__int128>(size()) + n <= options_.min_size_to_sample ||
         DifferenceAfterInserts(n) <= options_.max_diff;
}

int64_t RateLimiter::SampleAllowance(int64_t limit) const {
  if (limit <= 0 || !CanSample(1)) return 0;
  if (CanSample(limit)) return limit;
  // CanSample never becomes true again as n grows, so: CanSample(yes) and not CanSample(no).
  int64_t yes = 1, no = limit;
  const double guess = std::floor(DifferenceAfterSamples(0) - options_.min_diff);
  if (guess > 1 && guess < static_cast<double>(limit)) {
    const int64_t n = static_cast<int64_t>(guess);
    if (CanSample(n)) {
      if (!CanSample(n + 1)) return n;
      yes = n + 1;
    } else {
      no = n;
    }
  }
  // Rounding spoiled the guess: at most 63 halvings.
  while (no - yes > 1) {
    const int64_t middle = yes + (no - yes) / 2;
    (CanSample(middle) ? yes : no) = middle;
  }
  return yes;
}

int64_t RateLimiter::InsertAllowance(int64_t limit) const {
  // CanInsert never becomes true again as n grows.
  while (limit > 0 && !CanInsert(limit)) limit /= 2;
  return std::max<int64_t>(limit, 0);
}

std::string RateLimiter::WhyNotSample(int64_t n) const {
  if (CanSample(n)) return "";
  if (size() < options_.min_size_to_sample) {
    return absl::StrFormat(
        "Cannot sample %d: the table has %d items (%d inserted - %d deleted), which is %d fewer "
        "than min_size_to_sample = %d.",
        n, size(), counts_.inserts, counts_.deletes, options_.min_size_to_sample - size(),
        options_.min_size_to_sample);
  }
  const double difference = DifferenceAfterSamples(n);
  return absl::StrFormat(
      "Cannot sample %d: %d inserts * %g samples_per_insert - %d samples - %d = %g, which is below "
      "min_diff = %g by %g.",
      n, counts_.inserts, options_.samples_per_insert, counts_.samples, n, difference,
      options_.min_diff, options_.min_diff - difference);
}

std::string RateLimiter::WhyNotInsert(int64_t n) const {
  if (CanInsert(n)) return "";
  const double difference = DifferenceAfterInserts(n);
  return absl::StrFormat(
      "Cannot insert %d: (%d + %d) inserts * %g samples_per_insert - %d samples = %g, which is "
      "above max_diff = %g by %g, and the table already has %d items of the min_size_to_sample = "
      "%d up to which inserts are free.",
      n, counts_.inserts, n, options_.samples_per_insert, counts_.samples, difference,
      options_.max_diff, difference - options_.max_diff, size(), options_.min_size_to_sample);
}

}  // namespace gear_reverb::rate_limiter
