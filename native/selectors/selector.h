// The strategy that picks the items to sample or to remove.
//
// Selectors are pure: no locks, no I/O, no clock; randomness comes from the caller's counter-based
// generator, so the same state and seed give the same draws everywhere. Items are named by the
// table's slots: small, dense, reused numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/base/philox.h"

namespace gear_reverb::selectors {

using Slot = uint32_t;

struct Draw {
  Slot slot;
  double probability;  // Of this slot in this draw; 1 for the deterministic strategies.
  bool operator==(const Draw&) const = default;
};

// What a strategy is, for TableInfo and checkpoints.
struct FifoOptions {};
struct LifoOptions {};
struct UniformOptions {};
// In proportion to priority ^ exponent. Zero priorities weigh zero under every exponent; if all are
// zero, all items are equally likely.
struct PrioritizedOptions {
  double exponent;
};
// Among equal priorities the item least recently inserted or updated.
struct HeapOptions {
  bool min_heap;
};
using SelectorOptions =
    std::variant<FifoOptions, LifoOptions, UniformOptions, PrioritizedOptions, HeapOptions>;

bool IsDeterministic(const SelectorOptions& options);
// Whether priorities may be below 0: not where they are weights.
bool TakesNegative(const SelectorOptions& options);
// "Prioritized(priority_exponent=0.8)".
std::string ToString(const SelectorOptions& options);

// Thread-compatible. Every operation on a batch is the same as its elements one after another.
// Preconditions (checked with an error, nothing done in part): Insert takes slots that are absent
// and Update and Erase slots that are present; priorities are finite, and TakesNegative or >= 0.
class Selector {
 public:
  virtual ~Selector() = default;

  virtual absl::Status Insert(absl::Span<const Slot> slots,
                              absl::Span<const double> priorities) = 0;
  virtual absl::Status Update(absl::Span<const Slot> slots,
                              absl::Span<const double> priorities) = 0;
  virtual absl::Status Erase(absl::Span<const Slot> slots) = 0;
  // Erase, then Insert, of distinct slots that are present.
  virtual absl::Status Replace(absl::Span<const Slot> slots,
                               absl::Span<const double> priorities) = 0;

  // Fills `draws`, with replacement, without changing the selector. FAILED_PRECONDITION when empty.
  virtual absl::Status Sample(base::Philox& random, absl::Span<Draw> draws) const = 0;
  // Fills `slots`, no more than are present, with what would be drawn if each were erased before
  // the next draw and others were inserted in between. False where that cannot be told.
  virtual bool NextOut(absl::Span<Slot> slots) const { return slots.empty(); }

  virtual void Clear() = 0;
  virtual size_t size() const = 0;
  virtual SelectorOptions options() const = 0;
};

// INVALID_ARGUMENT for an exponent that is negative or not finite.
absl::StatusOr<std::unique_ptr<Selector>> MakeSelector(const SelectorOptions& options);

}  // namespace gear_reverb::selectors
