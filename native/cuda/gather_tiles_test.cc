// The lanes' kernel on an emulated warp, on the cases that the CPU's twin and the GPU have too.
#include "native/cuda/gather_tiles.cuh"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "native/cuda/emulated_warp_test_base.h"
#include "native/device/gather_cases.h"

namespace gear_reverb::cuda {
namespace {

using device::CaseSize;
using device::GatherCase;
using device::kPoison;

// As the kernel has it, with this many warps of one block each, one after another.
void GatherByEmulatedWarps(const device::GatherPlan& plan, uint32_t warps, std::byte* output) {
  const RowList list = plan.list();
  blockDim.x = 32;
  gridDim.x = warps;
  for (uint32_t warp = 0; warp < warps; ++warp) {
    blockIdx.x = warp;
    EmulatedWarp::Run([&] {
      const uint32_t lane = threadIdx.x % 32;
      ForTiles(list, [&](uint64_t number) {
        WriteTile(lane, FindTile(list, number, lane), output,
                  [](const Tile&, int64_t, int64_t) { return false; });
      });
    });
  }
}

using GatherTilesTest = EmulatedWarpTest;
using UpperBoundTest = EmulatedWarpTest;

// The output as device memory starts: at a multiple of 128. Kernels load whole words, so the source
// has some bytes more.
std::vector<std::byte> Gather(GatherCase& made, uint32_t warps) {
  std::vector<std::byte> source(made.source.size() + 32);
  auto* const begin = source.data() + -reinterpret_cast<uintptr_t>(source.data()) % 16;
  std::memcpy(begin, made.source.data(), made.source.size());
  for (size_t i = 0; i < made.plan.pieces().size(); ++i) {
    device::RowPiece& piece = made.plan.mutable_piece(i);
    piece.data = begin + (piece.data - made.source.data());
  }
  const size_t bytes = made.expected.size();
  std::vector<std::byte> room(bytes + 128, kPoison);
  auto* const output = room.data() + -reinterpret_cast<uintptr_t>(room.data()) % 128;
  GatherByEmulatedWarps(made.plan, warps, output);
  return {output, output + bytes};
}

TEST_F(GatherTilesTest, ManyShortRows) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    GatherCase made = RandomGatherCase(seed, CaseSize::kSmall);
    ASSERT_EQ(Difference(made, Gather(made, 3)), "");
  }
}

TEST_F(GatherTilesTest, RowsOfSeveralTiles) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    GatherCase made = RandomGatherCase(seed, CaseSize::kMedium);
    ASSERT_EQ(Difference(made, Gather(made, 5)), "");
  }
}

TEST_F(GatherTilesTest, MoreWarpsThanTiles) {
  device::GatherPlan plan;
  const std::vector<std::byte> source(64, std::byte{7});
  plan.AddRow(RowKind::kCopy, 0, 0, 40);
  plan.AddPiece(source.data(), 40);
  alignas(128) std::byte output[128] = {};
  GatherByEmulatedWarps(plan, 4, output);
  EXPECT_EQ(std::memcmp(output, source.data(), 40), 0);
  EXPECT_EQ(output[40], std::byte{0});
}

TEST_F(UpperBoundTest, IsThatOfTheLibrary) {
  std::vector<uint64_t> numbers;
  for (uint32_t size : {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 5000}) {
    numbers.clear();
    for (uint32_t i = 0; i < size; ++i) numbers.push_back(i / 3 * 2);
    for (uint64_t value = 0; value < size + 3; value += 1 + size / 9) {
      uint32_t found = 0;
      EmulatedWarp::Run([&] {
        found = UpperBound(threadIdx.x, size, value, [&](uint32_t i) { return numbers[i]; });
      });
      ASSERT_EQ(found, std::upper_bound(numbers.begin(), numbers.end(), value) - numbers.begin());
    }
  }
}

}  // namespace
}  // namespace gear_reverb::cuda
