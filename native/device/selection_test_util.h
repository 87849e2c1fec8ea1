// What tests of selections share, whatever the backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "native/device/selection.h"
#include "native/selectors/testing_util.h"

namespace gear_reverb::device::testing {

// A backend by name; `make` may fail where there is no such device.
struct NamedBackend {
  std::string name;
  absl::StatusOr<std::shared_ptr<SelectBackend>> (*make)();
};

inline NamedBackend TwinBackend() {
  return {"Twin",
          []() -> absl::StatusOr<std::shared_ptr<SelectBackend>> { return MakeSelectTwin(); }};
}

// Draws, in host memory.
struct Draws {
  std::vector<uint32_t> slots;
  std::vector<uint64_t> keys;
  std::vector<double> probabilities;
  std::vector<float> weights;
  bool operator==(const Draws&) const = default;
};

template <typename T>
std::vector<T> ToHost(SelectBackend& backend, const T* memory, size_t count) {
  std::vector<T> host(count);
  EXPECT_TRUE(backend.Copy(host.data(), memory, count * sizeof(T), nullptr).ok());
  EXPECT_TRUE(backend.Synchronize(nullptr).ok());
  return host;
}

// Has `draw` write n draws to poisoned memory, and copies them.
template <typename Call>
absl::Status Collect(SelectBackend& backend, uint32_t n, Call draw, Draws* draws) {
  constexpr size_t kBytes = 24;
  void* const memory = backend.Allocate(n * kBytes).value();
  EXPECT_TRUE(backend.Fill(memory, 0xa5, n * kBytes, nullptr).ok());
  DrawOutput output;
  output.keys = static_cast<uint64_t*>(memory);
  output.probabilities = reinterpret_cast<double*>(output.keys + n);
  output.slots = reinterpret_cast<uint32_t*>(output.probabilities + n);
  output.weights = reinterpret_cast<float*>(output.slots + n);
  const absl::Status status = draw(output);
  draws->slots = ToHost(backend, output.slots, n);
  draws->keys = ToHost(backend, output.keys, n);
  draws->probabilities = ToHost(backend, output.probabilities, n);
  draws->weights = ToHost(backend, output.weights, n);
  backend.Free(memory);
  return status;
}

inline Draws Draw(Selection& selection, uint32_t n, double beta = 0) {
  Draws draws;
  const absl::Status status = Collect(
      *selection.backend(), n,
      [&](const DrawOutput& output) { return selection.Draw(n, beta, output, nullptr); }, &draws);
  EXPECT_TRUE(status.ok()) << status;
  return draws;
}

inline Draws Draw(Selection& selection, uint32_t n, double beta, uint64_t seed,
                  uint64_t position = 0) {
  EXPECT_TRUE(selection.Seed(seed, position, nullptr).ok());
  return Draw(selection, n, beta);
}

inline Draws Top(Selection& selection, uint32_t k) {
  Draws draws;
  const absl::Status status = Collect(
      *selection.backend(), k,
      [&](const DrawOutput& output) { return selection.Top(k, output, nullptr); }, &draws);
  EXPECT_TRUE(status.ok()) << status;
  return draws;
}

inline SlotState Held(uint32_t slot, double priority, uint64_t order = 0) {
  SlotState state;
  state.key = uint64_t{slot} * 0x9E3779B97F4A7C15 + 1;
  state.priority = priority;
  state.order = order;
  state.slot = slot;
  state.held = 1;
  return state;
}
inline SlotState Free(uint32_t slot) {
  SlotState state;
  state.slot = slot;
  return state;
}

inline std::vector<SlotState> StatesOf(const std::vector<double>& priorities) {
  std::vector<SlotState> states;
  for (size_t i = 0; i < priorities.size(); ++i) {
    states.push_back(Held(static_cast<uint32_t>(i), priorities[i], i));
  }
  return states;
}

struct Case {
  NamedBackend backend;
  selectors::SelectorOptions options;
};

inline std::vector<Case> Cases(const NamedBackend& backend) {
  std::vector<Case> cases;
  for (const selectors::SelectorOptions& options : std::vector<selectors::SelectorOptions>{
           selectors::FifoOptions{}, selectors::LifoOptions{}, selectors::UniformOptions{},
           selectors::PrioritizedOptions{0.7}, selectors::PrioritizedOptions{1.0},
           selectors::HeapOptions{true}, selectors::HeapOptions{false}}) {
    cases.push_back({backend, options});
  }
  return cases;
}

inline std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.backend.name + selectors::ToString(info.param.options);
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

class SelectionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto made = GetParam().backend.make();
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    backend = *made;
  }

  std::unique_ptr<Selection> Make() const { return Make(GetParam().options); }
  std::unique_ptr<Selection> Make(const selectors::SelectorOptions& options) const {
    return Selection::Create(options, backend).value();
  }
  // The same strategy on the CPU.
  static std::unique_ptr<Selection> MakeTwin() {
    return Selection::Create(GetParam().options, MakeSelectTwin()).value();
  }
  bool IsOrdered() const { return selectors::IsDeterministic(GetParam().options); }
  bool IsWeighted() const {
    return std::holds_alternative<selectors::PrioritizedOptions>(GetParam().options);
  }
  bool IsHeap() const { return std::holds_alternative<selectors::HeapOptions>(GetParam().options); }

  std::shared_ptr<SelectBackend> backend;
};

}  // namespace gear_reverb::device::testing
