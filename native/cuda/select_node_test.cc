// The kernels' way through a tree, on an emulated warp, against the trees and draws of the twin.
#include "native/cuda/select_node.cuh"

#include <gtest/gtest.h>

#include <random>

#include "native/cuda/emulated_warp_test_base.h"
#include "native/device/selection_test_util.h"

namespace gear_reverb::cuda {
namespace {

using device::Selection;
using device::TreeView;

std::unique_ptr<Selection> Filled(const selectors::SelectorOptions& options, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<device::SlotState> states;
  for (uint32_t slot = 0; slot < 3000; ++slot) {
    if (random() % 3 == 0) continue;
    const double priority = random() % 4 == 0 ? 0.0
                                              : std::ldexp(1.0 + (random() >> 12) * 0x1p-52,
                                                           static_cast<int>(random() % 40));
    states.push_back(device::testing::Held(slot, priority, random()));
  }
  auto selection = Selection::Create(options, device::MakeSelectTwin()).value();
  EXPECT_TRUE(selection->Apply(states, nullptr).ok());
  return selection;
}

bool Same(const Rank& a, const Rank& b) { return a.Is(b); }
template <typename T>
bool Same(T a, T b) {
  return a == b;
}

using SelectNodeTest = EmulatedWarpTest;

// Four nodes at a time.
template <typename T>
void ExpectTheTwinsNodes(const TreeView<T>& tree) {
  for (int level = 1; level <= tree.top; ++level) {
    for (uint32_t first = 0; first < tree.count[level]; first += 4) {
      EmulatedWarp::Run([&] {
        const uint32_t node = std::min(first + threadIdx.x / kLanes, tree.count[level] - 1);
        const T value = CombineNode(tree.level[level - 1] + node * kFanout, LaneOfNode());
        EXPECT_TRUE(Same(value, tree.level[level][node])) << "level " << level << ", " << node;
      });
    }
  }
}

// Four draws at a time.
template <typename Draw>
void ExpectTheTwinsDraws(Selection& selection, Draw draw) {
  constexpr uint32_t kDraws = 200;
  const device::testing::Draws expected = device::testing::Draw(selection, kDraws, 0, 7);
  for (uint32_t first = 0; first < kDraws; first += 4) {
    EmulatedWarp::Run([&] {
      const uint32_t i = first + threadIdx.x / kLanes;
      const Drawn drawn = draw(base::PhiloxNumber(7, i));
      EXPECT_EQ(drawn.slot, expected.slots[i]);
      EXPECT_EQ(drawn.probability, expected.probabilities[i]);
    });
  }
}

TEST_F(SelectNodeTest, WeightsAreTheTwins) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto selection = Filled(selectors::PrioritizedOptions{0.7}, seed);
    const TreeView<double>& tree = selection->view().weights;
    ExpectTheTwinsNodes(tree);
    ExpectTheTwinsDraws(*selection, [&](uint64_t bits) { return DrawFrom(tree, bits); });
  }
}

TEST_F(SelectNodeTest, CountsAreTheTwins) {
  const auto selection = Filled(selectors::UniformOptions{}, 3);
  const TreeView<uint32_t>& tree = selection->view().counts;
  ExpectTheTwinsNodes(tree);
  ExpectTheTwinsDraws(*selection, [&](uint64_t bits) { return DrawFrom(tree, bits); });
}

TEST_F(SelectNodeTest, RanksAreTheTwins) {
  for (const selectors::SelectorOptions& options : std::vector<selectors::SelectorOptions>{
           selectors::FifoOptions{}, selectors::LifoOptions{}, selectors::HeapOptions{true}}) {
    const auto selection = Filled(options, 4);
    const TreeView<Rank>& tree = selection->view().ranks;
    ExpectTheTwinsNodes(tree);
    ExpectTheTwinsDraws(*selection, [&](uint64_t) { return FirstInOrder(tree); });
  }
}

}  // namespace
}  // namespace gear_reverb::cuda
