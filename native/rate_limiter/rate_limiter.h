// The samples-per-insert arithmetic that decides when a table may insert or sample. Pure: it
// counts and answers; waiting is the table's business. Thread-compatible.
//
// With i inserts, s samples, d deletes: n samples are allowed if i - d >= min_size_to_sample and
// i * spi - s - n >= min_diff; n inserts if i + n - d <= min_size_to_sample or
// (i + n) * spi - s <= max_diff.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gear_reverb::rate_limiter {

struct RateLimiterOptions {
  double samples_per_insert = 1.0;
  int64_t min_size_to_sample = 1;
  double min_diff = 0;
  double max_diff = 0;
};

struct RateLimiterCounts {
  int64_t inserts = 0;
  int64_t samples = 0;
  int64_t deletes = 0;
};

class RateLimiter {
 public:
  // INVALID_ARGUMENT naming the option: NaN, samples_per_insert < 0 or infinite,
  // min_size_to_sample < 1, min_diff > max_diff.
  static absl::StatusOr<RateLimiter> Create(const RateLimiterOptions& options);

  bool CanSample(int64_t n) const;
  bool CanInsert(int64_t n) const;
  // The largest n <= `limit` that CanSample allows; 0 if none.
  int64_t SampleAllowance(int64_t limit) const;
  // Some n <= `limit` that CanInsert allows, and every smaller number too; 0 only if it allows
  // none.
  int64_t InsertAllowance(int64_t limit) const;

  void CountInsert(int64_t n) { counts_.inserts += n; }
  void CountSample(int64_t n) { counts_.samples += n; }
  void CountDelete(int64_t n) { counts_.deletes += n; }
  void Reset() { counts_ = {}; }
  // The counts are not negative; who reads them from a file checks that.
  void Restore(const RateLimiterCounts& counts) { counts_ = counts; }

  // "" if n are allowed, else the inequality that fails and by how much, in words.
  std::string WhyNotSample(int64_t n) const;
  std::string WhyNotInsert(int64_t n) const;

  const RateLimiterOptions& options() const { return options_; }
  const RateLimiterCounts& counts() const { return counts_; }

 private:
  explicit RateLimiter(const RateLimiterOptions& options) : options_(options) {}

  int64_t size() const { return counts_.inserts - counts_.deletes; }
  double DifferenceAfterSamples(int64_t n) const;
  double DifferenceAfterInserts(int64_t n) const;

  RateLimiterOptions options_;
  RateLimiterCounts counts_;
};

}  // namespace gear_reverb::rate_limiter
