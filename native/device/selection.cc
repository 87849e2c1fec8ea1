#include "native/device/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <variant>

#include "native/base/status.h"

namespace gear_reverb::device {
namespace {

// States that are written at once; more come in several batches of one resummation.
constexpr size_t kMaxBatch = size_t{1} << 20;
constexpr size_t kMinSlots = 1024;
constexpr size_t kClaimBytes = sizeof(uint32_t) + sizeof(int32_t);
constexpr size_t kMaxSlots = kNoSlot;
constexpr uint32_t kMaxDraws = uint32_t{1} << 28;

Strategy StrategyOf(const selectors::SelectorOptions& options) {
  static_assert(std::variant_size_v<selectors::SelectorOptions> == 5);
  if (std::holds_alternative<selectors::UniformOptions>(options)) return Strategy::kUniform;
  if (std::holds_alternative<selectors::PrioritizedOptions>(options)) return Strategy::kWeighted;
  if (std::holds_alternative<selectors::FifoOptions>(options)) return Strategy::kFifo;
  if (std::holds_alternative<selectors::LifoOptions>(options)) return Strategy::kLifo;
  return std::get<selectors::HeapOptions>(options).min_heap ? Strategy::kMinHeap
                                                            : Strategy::kMaxHeap;
}

template <typename T>
constexpr int kEmptyByte = 0;  // Zero weight, no items.
template <>
constexpr int kEmptyByte<Rank> = 0xff;

template <typename T>
void FreeTree(SelectBackend& backend, TreeView<T>& tree) {
  for (T* const level : tree.level) {
    if (level != nullptr) backend.Free(level);
  }
  tree = TreeView<T>();
}

// A tree for `slots` slots with the leaves of `tree`, in its place; the sums are to be computed.
template <typename T>
absl::Status GrowTree(SelectBackend& backend, size_t slots, TreeView<T>& tree, Stream stream) {
  TreeView<T> grown;
  const auto fill = [&]() -> absl::Status {
    size_t count = slots;
    for (int level = 0;; ++level) {
      const size_t padded = (count + kFanout - 1) / kFanout * kFanout;
      GR_ASSIGN_OR_RETURN(void* const memory, backend.Allocate(padded * sizeof(T)));
      grown.level[level] = static_cast<T*>(memory);
      grown.count[level] = static_cast<uint32_t>(count);
      grown.top = level;
      GR_RETURN_IF_ERROR(backend.Fill(memory, kEmptyByte<T>, padded * sizeof(T), stream));
      if (count == 1) break;
      count = (count + kFanout - 1) / kFanout;
    }
    if (tree.top == 0) return absl::OkStatus();
    return backend.Copy(grown.level[0], tree.level[0], tree.count[0] * sizeof(T), stream);
  };
  if (absl::Status status = fill(); !status.ok()) {
    FreeTree(backend, grown);
    return status;
  }
  FreeTree(backend, tree);
  tree = grown;
  return absl::OkStatus();
}

template <typename T>
absl::Status ClearTree(SelectBackend& backend, const TreeView<T>& tree, Stream stream) {
  for (int level = 0; tree.top > 0 && level <= tree.top; ++level) {
    GR_RETURN_IF_ERROR(
        backend.Fill(tree.level[level], kEmptyByte<T>, tree.count[level] * sizeof(T), stream));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Selection>> Selection::Create(
    const selectors::SelectorOptions& options, std::shared_ptr<SelectBackend> backend) {
  GR_RETURN_IF_ERROR(selectors::MakeSelector(options).status());  // Checks the options.
  std::unique_ptr<Selection> selection(new Selection(options, std::move(backend)));
  GR_ASSIGN_OR_RETURN(void* const memory, selection->backend_->Allocate(sizeof(DrawState)));
  selection->draw_state_ = static_cast<DrawState*>(memory);
  GR_RETURN_IF_ERROR(selection->Seed(0, 0, nullptr));
  return selection;
}

Selection::Selection(const selectors::SelectorOptions& options,
                     std::shared_ptr<SelectBackend> backend)
    : backend_(std::move(backend)), takes_negative_(selectors::TakesNegative(options)) {
  view_.strategy = StrategyOf(options);
  if (const auto* prioritized = std::get_if<selectors::PrioritizedOptions>(&options)) {
    view_.exponent = prioritized->exponent;
  }
}

Selection::~Selection() {
  FreeTree(*backend_, view_.counts);
  FreeTree(*backend_, view_.weights);
  FreeTree(*backend_, view_.ranks);
  for (void* const memory : {static_cast<void*>(view_.keys), static_cast<void*>(draw_state_),
                             static_cast<void*>(batch_), static_cast<void*>(claims_)}) {
    if (memory != nullptr) backend_->Free(memory);
  }
}

absl::Status Selection::Reserve(size_t count, Stream stream) {
  if (count <= capacity_) return absl::OkStatus();
  if (count > kMaxSlots) {
    return base::InvalidArgument("A selection has at most ", kMaxSlots, " slots, not ", count, ".");
  }
  const size_t slots = std::min(kMaxSlots, std::max({count, 2 * capacity_, kMinSlots}));
  GR_ASSIGN_OR_RETURN(void* const memory, backend_->Allocate(slots * sizeof(uint64_t)));
  if (capacity_ > 0) {
    const absl::Status status =
        backend_->Copy(memory, view_.keys, capacity_ * sizeof(uint64_t), stream);
    if (!status.ok()) {
      backend_->Free(memory);
      return status;
    }
    backend_->Free(view_.keys);
  }
  view_.keys = static_cast<uint64_t*>(memory);
  if (IsOrdered(view_.strategy)) {
    GR_RETURN_IF_ERROR(GrowTree(*backend_, slots, view_.ranks, stream));
  } else {
    GR_RETURN_IF_ERROR(GrowTree(*backend_, slots, view_.counts, stream));
    if (view_.strategy == Strategy::kWeighted) {
      GR_RETURN_IF_ERROR(GrowTree(*backend_, slots, view_.weights, stream));
    }
  }
  held_.resize(slots);
  capacity_ = slots;
  return Resum(stream);
}

absl::Status Selection::Check(absl::Span<const SlotState> states) const {
  for (const SlotState& state : states) {
    if (state.slot >= kMaxSlots) return base::InvalidArgument("Slot ", state.slot, " is reserved.");
    if (state.held > 1) {
      return base::InvalidArgument("Slot ", state.slot, ": held must be 0 or 1, not ", state.held,
                                   ".");
    }
    if (state.held == 1 &&
        (!std::isfinite(state.priority) || (state.priority < 0 && !takes_negative_))) {
      return base::InvalidArgument("Priority must be finite",
                                   takes_negative_ ? "" : " and not negative", ", but slot ",
                                   state.slot, " got ", state.priority, ".");
    }
  }
  return absl::OkStatus();
}

bool Selection::CountMembers(absl::Span<const SlotState> states) {
  bool changed = false;
  for (const SlotState& state : states) {
    const bool held = state.held != 0;
    if (held_[state.slot] == held) continue;
    held_[state.slot] = held;
    size_ += held ? size_t{1} : ~size_t{0};
    changed = true;
  }
  return changed;
}

absl::Status Selection::ReserveBatch(size_t states) {
  if (states <= batch_capacity_) return absl::OkStatus();
  const size_t capacity = std::bit_ceil(std::max<size_t>(states, 1024));
  GR_ASSIGN_OR_RETURN(void* const batch, backend_->Allocate(capacity * sizeof(SlotState)));
  absl::StatusOr<void*> claims = backend_->Allocate(2 * capacity * kClaimBytes);
  if (!claims.ok()) {
    backend_->Free(batch);
    return claims.status();
  }
  if (batch_ != nullptr) {
    backend_->Free(batch_);
    backend_->Free(claims_);
  }
  batch_ = static_cast<SlotState*>(batch);
  claims_ = static_cast<uint32_t*>(*claims);
  batch_capacity_ = capacity;
  return absl::OkStatus();
}

absl::Status Selection::Apply(absl::Span<const SlotState> states, Stream stream) {
  if (states.empty()) return absl::OkStatus();
  GR_RETURN_IF_ERROR(Check(states));
  uint32_t last = 0;
  for (const SlotState& state : states) last = std::max(last, state.slot);
  GR_RETURN_IF_ERROR(Reserve(size_t{last} + 1, stream));
  GR_RETURN_IF_ERROR(ReserveBatch(std::min(states.size(), kMaxBatch)));
  const bool members_changed = CountMembers(states);
  for (size_t i = 0; i < states.size(); i += kMaxBatch) {
    const absl::Span<const SlotState> batch = states.subspan(i, kMaxBatch);
    const size_t places = std::bit_ceil(2 * batch.size());
    const ClaimTable claims{claims_, reinterpret_cast<int32_t*>(claims_ + places),
                            static_cast<uint32_t>(places - 1)};
    GR_RETURN_IF_ERROR(backend_->Fill(claims_, 0xff, places * kClaimBytes, stream));
    GR_RETURN_IF_ERROR(
        backend_->Copy(batch_, batch.data(), batch.size() * sizeof(SlotState), stream));
    GR_RETURN_IF_ERROR(
        backend_->Write(view_, batch_, static_cast<uint32_t>(batch.size()), claims, stream));
  }
  const bool at_once = states.size() <= kMaxBatch;
  return backend_->Resum(view_, at_once ? batch_ : nullptr,
                         at_once ? static_cast<uint32_t>(states.size()) : 0, members_changed,
                         stream);
}

absl::Status Selection::Clear(Stream stream) {
  held_.assign(held_.size(), false);
  size_ = 0;
  GR_RETURN_IF_ERROR(ClearTree(*backend_, view_.counts, stream));
  GR_RETURN_IF_ERROR(ClearTree(*backend_, view_.weights, stream));
  return ClearTree(*backend_, view_.ranks, stream);
}

absl::Status Selection::Resum(Stream stream) {
  if (capacity_ == 0) return absl::OkStatus();
  return backend_->Resum(view_, nullptr, 0, true, stream);
}

absl::Status Selection::Seed(uint64_t seed, uint64_t position, Stream stream) {
  const DrawState state{seed, position, 0};
  return backend_->Copy(draw_state_, &state, sizeof(state), stream);
}

absl::Status Selection::CheckDraw(uint32_t n, double beta, const DrawOutput& output) const {
  if (n == 0 || n > kMaxDraws) {
    return base::InvalidArgument("n (", n, ") must be between 1 and ", kMaxDraws, ".");
  }
  if (!(beta >= 0) || std::isinf(beta)) {
    return base::InvalidArgument("beta (", beta, ") must be finite and not negative.");
  }
  if (output.weights != nullptr && output.probabilities == nullptr) {
    return base::InvalidArgument("Importance weights want probabilities as well.");
  }
  return absl::OkStatus();
}

absl::Status Selection::CheckTop(uint32_t k) const {
  if (!IsOrdered(view_.strategy)) {
    return base::InvalidArgument("Only an ordered strategy (Fifo, Lifo, a heap) has first items.");
  }
  if (k == 0 || k > kMaxTop) {
    return base::InvalidArgument("k (", k, ") must be between 1 and ", kMaxTop, ".");
  }
  return absl::OkStatus();
}

absl::Status Selection::Draw(uint32_t n, double beta, const DrawOutput& output, Stream stream) {
  GR_RETURN_IF_ERROR(CheckDraw(n, beta, output));
  if (size_ == 0) return base::FailedPrecondition("Cannot sample from an empty selection.");
  return backend_->Draw(view_, draw_state_, n, beta, output, stream);
}

absl::Status Selection::Top(uint32_t k, const DrawOutput& output, Stream stream) {
  GR_RETURN_IF_ERROR(CheckTop(k));
  if (k > size_) {
    return base::FailedPrecondition("Cannot give the first ", k, " of ", size_, " items.");
  }
  return backend_->Top(view_, k, output, stream);
}

}  // namespace gear_reverb::device
