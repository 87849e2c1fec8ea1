#include "native/device/select_check.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/device/check_memory.h"
#include "native/device/selection.h"

namespace gear_reverb::device {
namespace {

constexpr size_t kDrawBytes = 24;  // A draw in all four forms.

DrawOutput OutputAt(const CheckMemory& memory, uint32_t n) {
  DrawOutput output;
  output.keys = memory.data<uint64_t>();
  output.probabilities = reinterpret_cast<double*>(output.keys + n);
  output.slots = reinterpret_cast<uint32_t*>(output.probabilities + n);
  output.weights = reinterpret_cast<float*>(output.slots + n);
  return output;
}

// What a call of a selection writes, over poison.
template <typename Call>
absl::StatusOr<std::vector<char>> Output(Selection& selection, uint32_t n, Call call) {
  GR_ASSIGN_OR_RETURN(const CheckMemory drawn,
                      CheckMemory::Create(*selection.backend(), n * kDrawBytes));
  GR_RETURN_IF_ERROR(call(selection, OutputAt(drawn, n)));
  return drawn.Read();
}

// `n` changes among `slots` slots, some of one slot, some that free it.
std::vector<SlotState> RandomStates(base::Philox& random, uint32_t n, uint32_t slots) {
  std::vector<SlotState> states(n);
  for (SlotState& state : states) {
    state.slot = static_cast<uint32_t>(random.NextBelow(slots));
    state.held = random.NextBelow(5) != 0;
    state.key = random.Next();
    state.order = random.Next();
    state.priority = random.NextBelow(4) == 0 ? 0.0 : random.NextDouble() * 100;
  }
  return states;
}

absl::Status CheckStrategy(const std::shared_ptr<SelectBackend>& backend,
                           const selectors::SelectorOptions& options, uint32_t slots,
                           base::Philox& random, std::vector<std::string>& differences) {
  GR_ASSIGN_OR_RETURN(const auto selection, Selection::Create(options, backend));
  GR_ASSIGN_OR_RETURN(const auto twin, Selection::Create(options, MakeSelectTwin()));
  const auto compare = [&](const std::string& what, uint32_t n, auto call) -> absl::Status {
    GR_ASSIGN_OR_RETURN(const std::vector<char> output, Output(*selection, n, call));
    GR_ASSIGN_OR_RETURN(const std::vector<char> expected, Output(*twin, n, call));
    if (output != expected) {
      differences.push_back(
          absl::StrCat(selectors::ToString(options), ": ", what, " differs from the twin's."));
    }
    return absl::OkStatus();
  };
  const uint64_t seed = random.Next();
  for (const auto& each : {selection.get(), twin.get()}) {
    GR_RETURN_IF_ERROR(each->Seed(seed, 0, nullptr));
  }
  for (const uint32_t batch : {slots, 1u, 33u, slots / 50, slots / 6}) {
    const std::vector<SlotState> states = RandomStates(random, batch, slots);
    for (const auto& each : {selection.get(), twin.get()}) {
      GR_RETURN_IF_ERROR(each->Apply(states, nullptr));
    }
    const uint32_t n = slots / 15 + 1;
    GR_RETURN_IF_ERROR(compare(absl::StrCat("a draw after ", batch, " changes"), n,
                               [n](Selection& drawn, const DrawOutput& output) {
                                 return drawn.Draw(n, 0.6, output, nullptr);
                               }));
    if (!selection->CheckTop(1).ok()) continue;
    for (uint32_t k : {1u, 32u, 777u, kMaxTop}) {
      k = std::min(k, static_cast<uint32_t>(selection->size()));
      GR_RETURN_IF_ERROR(compare(absl::StrCat("the first ", k, " after ", batch, " changes"), k,
                                 [k](Selection& drawn, const DrawOutput& output) {
                                   return drawn.Top(k, output, nullptr);
                                 }));
    }
  }
  return absl::OkStatus();
}

// A selection of `items` items of random priorities.
absl::StatusOr<std::unique_ptr<Selection>> Filled(std::shared_ptr<SelectBackend> backend,
                                                  const selectors::SelectorOptions& strategy,
                                                  uint64_t items) {
  if (items == 0 || items >= kNoSlot) {
    return base::InvalidArgument("items (", items, ") must be between 1 and ", kNoSlot - 1, ".");
  }
  GR_ASSIGN_OR_RETURN(auto selection, Selection::Create(strategy, std::move(backend)));
  GR_RETURN_IF_ERROR(selection->Reserve(items, nullptr));
  base::Philox random(1);
  std::vector<SlotState> states;
  for (uint64_t first = 0; first < items; first += states.size()) {
    states.resize(std::min<uint64_t>(items - first, uint64_t{1} << 20));
    for (size_t i = 0; i < states.size(); ++i) {
      states[i].slot = static_cast<uint32_t>(first + i);
      states[i].held = 1;
      states[i].key = states[i].order = first + i;
      states[i].priority = random.NextDouble();
    }
    GR_RETURN_IF_ERROR(selection->Apply(states, nullptr));
  }
  return selection;
}

// Seconds of a call, in the median of some windows of `repeats` calls in all; before that the
// device works for a while, since its clocks are slow when it has idled.
template <typename Call>
absl::StatusOr<double> Measure(SelectBackend& backend, int repeats, Call call) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kWarmUp = std::chrono::milliseconds(30);
  constexpr int kWindows = 5;
  if (repeats < 1) return base::InvalidArgument("repeats (", repeats, ") must be >= 1.");
  const auto start = Clock::now();
  do {
    GR_RETURN_IF_ERROR(call());
    GR_RETURN_IF_ERROR(backend.Synchronize(nullptr));
  } while (Clock::now() - start < kWarmUp);
  const int calls = std::max(repeats / kWindows, 1);
  std::vector<double> seconds;
  for (int left = repeats; left >= calls; left -= calls) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) GR_RETURN_IF_ERROR(call());
    GR_RETURN_IF_ERROR(backend.Synchronize(nullptr));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / calls);
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckSelection(std::shared_ptr<SelectBackend> backend,
                                                        uint64_t seed, uint32_t slots) {
  if (slots < 2000 || slots > 1u << 30) {
    return base::InvalidArgument("slots (", slots, ") must be between 2000 and 2^30.");
  }
  std::vector<std::string> differences;
  base::Philox random(seed);
  for (const selectors::SelectorOptions& options : std::vector<selectors::SelectorOptions>{
           selectors::FifoOptions{}, selectors::LifoOptions{}, selectors::UniformOptions{},
           selectors::PrioritizedOptions{0.6}, selectors::HeapOptions{true},
           selectors::HeapOptions{false}}) {
    GR_RETURN_IF_ERROR(CheckStrategy(backend, options, slots, random, differences));
  }
  return differences;
}

absl::StatusOr<double> MeasureDraw(std::shared_ptr<SelectBackend> backend,
                                   const selectors::SelectorOptions& strategy, uint64_t items,
                                   uint32_t draws, int repeats) {
  GR_ASSIGN_OR_RETURN(const auto selection, Filled(std::move(backend), strategy, items));
  GR_RETURN_IF_ERROR(selection->CheckDraw(draws, 0.4, {}));
  GR_ASSIGN_OR_RETURN(const CheckMemory drawn,
                      CheckMemory::Create(*selection->backend(), draws * kDrawBytes));
  return Measure(*selection->backend(), repeats,
                 [&] { return selection->Draw(draws, 0.4, OutputAt(drawn, draws), nullptr); });
}

absl::StatusOr<double> MeasureTop(std::shared_ptr<SelectBackend> backend,
                                  const selectors::SelectorOptions& strategy, uint64_t items,
                                  uint32_t k, int repeats) {
  GR_ASSIGN_OR_RETURN(const auto selection, Filled(std::move(backend), strategy, items));
  GR_RETURN_IF_ERROR(selection->CheckTop(k));
  GR_ASSIGN_OR_RETURN(const CheckMemory first,
                      CheckMemory::Create(*selection->backend(), k * kDrawBytes));
  return Measure(*selection->backend(), repeats,
                 [&] { return selection->Top(k, OutputAt(first, k), nullptr); });
}

absl::StatusOr<double> MeasureUpdate(DrawBackend& backend, uint64_t items, uint32_t updates,
                                     int repeats) {
  constexpr size_t kBatches = 64;
  if (updates == 0) return base::InvalidArgument("updates (", updates, ") must be >= 1.");
  GR_ASSIGN_OR_RETURN(const auto selection,
                      Filled(backend.select(), selectors::PrioritizedOptions{0.6}, items));
  GR_ASSIGN_OR_RETURN(const auto memory,
                      backend.AllocateHost(kBatches * updates * sizeof(SlotState)));
  const absl::Span<SlotState> states(reinterpret_cast<SlotState*>(memory.get()),
                                     kBatches * updates);
  base::Philox random(2);
  for (SlotState& state : states) {
    state = {};
    state.slot = static_cast<uint32_t>(random.NextBelow(items));
    state.held = 1;
    state.key = state.slot;
    state.priority = random.NextDouble();
  }
  size_t batch = 0;
  return Measure(*backend.select(), repeats, [&] {
    return selection->Apply(states.subspan(batch++ % kBatches * updates, updates), nullptr);
  });
}

}  // namespace gear_reverb::device
