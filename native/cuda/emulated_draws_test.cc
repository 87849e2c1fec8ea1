// Draws of an emulated GPU that go on after they were captured, and from a tier in its memory.
#include <cuda_runtime_api.h>
#include <emulated_machine.h>

#include "native/cuda/gpu.h"
#include "native/cuda/gpu_device.h"
#include "native/cuda/gpu_tier_memory.h"
#include "native/device/device_tier.h"
#include "native/device/resident_table_fixture.h"

namespace gear_reverb::device::testing {
namespace {

std::shared_ptr<cuda::GpuDevice> OpenGpu() {
  return std::static_pointer_cast<cuda::GpuDevice>(cuda::OpenGpu(0).value());
}

absl::StatusOr<std::shared_ptr<DrawBackend>> EmulatedDraws() {
  GR_ASSIGN_OR_RETURN(auto backend, OpenGpu()->NewDrawBackend(nullptr));
  return std::shared_ptr<DrawBackend>(std::move(backend));
}

class EmulatedDrawsTest : public ResidentTableTest {
 protected:
  std::shared_ptr<DeviceTier> TierOf(const std::shared_ptr<table::Table>& of) override {
    if (!with_tier) return nullptr;
    tier = std::make_shared<DeviceTier>("t", cuda::NewGpuTierMemory(OpenGpu()), TierOptions{});
    of->Attach(tier);
    return tier;
  }
  void TearDown() override {
    plan = nullptr;
    resident = nullptr;
    tier = nullptr;
    ResidentTableTest::TearDown();
  }

  bool with_tier = false;
  std::shared_ptr<DeviceTier> tier;
};

TEST_P(EmulatedDrawsTest, ACaptureIsRunAgainOverATableThatChanges) {
  for (const bool tiered : {false, true}) {
    with_tier = tiered;
    Open(300, selectors::PrioritizedOptions{0.8}, table::MinSize(1), /*in_place=*/true);
    ASSERT_NO_FATAL_FAILURE(Insert(0, 1));
    const Batch first = Draw(16).value();
    ASSERT_TRUE(backend->Synchronize().ok());
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_TRUE(plan->Enqueue(resident->selection(), 0.5, first.output, stream).ok());
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t run = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
    std::vector<std::vector<uint64_t>> drawn;
    for (uint64_t key = 1; key < 700; key += 70) {
      for (uint64_t i = 0; i < 70; ++i) {
        ASSERT_NO_FATAL_FAILURE(Insert(key + i, 1 + i % 5, 1 + static_cast<int32_t>(i % 4)));
      }
      Forget();
      if (tiered) tier->WaitUntilSettled();
      ASSERT_TRUE(resident->Prepare(16, absl::InfinitePast(), stream).ok());
      ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
      ASSERT_TRUE(resident->Collect(*plan, first.output, stream).ok());
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      Batch again = first;
      again.contents = contents;
      again.table_size = resident->table_size();
      ASSERT_NO_FATAL_FAILURE(ExpectContents(again));
      drawn.push_back(Keys(again));
      for (size_t i = 0; i + 1 < drawn.size(); ++i) ASSERT_NE(drawn[i], drawn.back());
    }
    EXPECT_EQ(resident->directory().mostly_there(), tiered);
    ASSERT_EQ(cudaGraphExecDestroy(run), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

TEST_P(EmulatedDrawsTest, CapturesOfOthersAreLeftAlone) {
  Open(10);
  ASSERT_NO_FATAL_FAILURE(Insert(0, 1));
  const Batch batch = Draw(4).value();
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal), cudaSuccess);
  // Draws on other streams, with allocations, uploads and marks, beside a capture.
  for (uint64_t key = 1; key < 40; ++key) {
    ASSERT_NO_FATAL_FAILURE(Insert(key, 1, 1 + static_cast<int32_t>(key % 6)));
    ASSERT_TRUE(resident->Prepare(4, absl::InfinitePast(), nullptr).ok());
    plan = DrawPlan::Create(resident->directory(), 4, {}, true, nullptr).value();
    auto* const output =
        static_cast<std::byte*>(backend->select()->Allocate(plan->arrays().output_bytes).value());
    outputs.push_back(output);
    ASSERT_TRUE(plan->Enqueue(resident->selection(), 0.5, output, nullptr).ok());
    ASSERT_TRUE(resident->Collect(*plan, output, nullptr).ok());
  }
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(other, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_P(EmulatedDrawsTest, WithoutMemoryForTheTierItemsAreReadWhereTheyLie) {
  with_tier = true;
  emulation::Machine machine;
  machine.memory_bytes = emulation::InUse().device_bytes + (size_t{1} << 20);
  Open(100);
  emulation::SetMachine(machine);
  for (uint64_t key = 0; key < 60; ++key) ASSERT_NO_FATAL_FAILURE(Insert(key, 1));
  tier->WaitUntilSettled();
  const auto batch = Draw(32);
  emulation::SetMachine({});
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_NO_FATAL_FAILURE(ExpectContents(*batch));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedDrawsTest,
                         ::testing::Values(NamedDrawBackend{"Emulated", EmulatedDraws}),
                         [](const auto& info) { return info.param.name; });

}  // namespace gear_reverb::device::testing
