// Which items to sample, decided where a backend computes: the strategies of `selectors`, with
// their state resident in the backend's memory, for batches of changes and of draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "native/device/select_backend.h"
#include "native/selectors/selector.h"

namespace gear_reverb::device {

// Draws are a pure function of the slots' states, the seed and the position: the same on every
// backend, whatever batches led there. Weights are those of selectors::PrioritizedSelector, but for
// a relative error of 10^-12 in the power.
//
// Memory per slot: 8 bytes of key, and 4.1 (uniform), 12.4 (weighted) or 16.5 (ordered).
//
// Thread-compatible. All calls must use one stream, or streams that the caller has made to wait for
// each other. After an error other than INVALID_ARGUMENT and FAILED_PRECONDITION the state is
// undefined until Clear.
class Selection {
 public:
  // INVALID_ARGUMENT for an exponent that is negative or not finite.
  static absl::StatusOr<std::unique_ptr<Selection>> Create(
      const selectors::SelectorOptions& options, std::shared_ptr<SelectBackend> backend);
  ~Selection();
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  // Room for slots below `count`. Growing moves everything and waits for the backend.
  absl::Status Reserve(size_t count, Stream stream);

  // Takes over the states of slots, of several for one slot the last one. The batch is atomic: a
  // later draw sees all of it. Only the nodes above its slots are touched. INVALID_ARGUMENT, with
  // nothing done, for a slot out of range or a priority that the strategy does not take.
  absl::Status Apply(absl::Span<const SlotState> states, Stream stream);
  // Forgets all items.
  absl::Status Clear(Stream stream);
  // Recomputes every sum from the leaves. This changes no bit, since sums are never adjusted; it
  // repairs memory that was overwritten.
  absl::Status Resum(Stream stream);

  // Where the next draw's numbers come from.
  absl::Status Seed(uint64_t seed, uint64_t position, Stream stream);
  // INVALID_ARGUMENT for arguments that Draw or Top would refuse, whatever the state.
  absl::Status CheckDraw(uint32_t n, double beta, const DrawOutput& output) const;
  absl::Status CheckTop(uint32_t k) const;
  // `n` > 0 draws with replacement, changing nothing but the position, which advances by n under
  // every strategy. `beta` >= 0 is for the importance weights. FAILED_PRECONDITION when empty. No
  // host memory is read when the work runs, so it may be captured and replayed.
  absl::Status Draw(uint32_t n, double beta, const DrawOutput& output, Stream stream);
  // The first `k` items of an ordered strategy, in order: oldest, youngest, or of lowest or highest
  // priority. INVALID_ARGUMENT for k = 0, k > kMaxTop and other strategies;
  // FAILED_PRECONDITION for fewer items.
  absl::Status Top(uint32_t k, const DrawOutput& output, Stream stream);

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  const std::shared_ptr<SelectBackend>& backend() const { return backend_; }
  // For tests and tools: what the kernels work on.
  const SelectionView& view() const { return view_; }
  // Where the next draw's numbers come from, in the backend's memory.
  const DrawState* draw_state() const { return draw_state_; }

 private:
  Selection(const selectors::SelectorOptions& options, std::shared_ptr<SelectBackend> backend);

  absl::Status Check(absl::Span<const SlotState> states) const;
  // Whether an item comes or goes.
  bool CountMembers(absl::Span<const SlotState> states);
  absl::Status ReserveBatch(size_t states);

  const std::shared_ptr<SelectBackend> backend_;
  SelectionView view_;
  bool takes_negative_;
  size_t capacity_ = 0;  // Slots.
  size_t size_ = 0;
  std::vector<bool> held_;
  DrawState* draw_state_ = nullptr;
  SlotState* batch_ = nullptr;  // Room for batch_capacity_ states.
  uint32_t* claims_ = nullptr;  // Room for a claim table of twice as many places.
  size_t batch_capacity_ = 0;
};

}  // namespace gear_reverb::device
