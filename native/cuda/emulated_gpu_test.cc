// What only a GPU that is emulated can show: captures that must not be disturbed, several GPUs,
// other capabilities, and that all is given back.
#include "native/cuda/emulated_gpu_fixture.h"
#include "native/cuda/gather.h"
#include "native/cuda/gpu_device.h"
#include "native/cuda/measure.h"
#include "native/device/draw_check.h"

namespace gear_reverb::cuda {
namespace {

// Outputs of many sizes, read late and out of order, whose memory is used again and again.
TEST_F(EmulatedGpuTest, OutputsAreReadAfterTheyAreWrittenAndBeforeTheyAreUsedAgain) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(2).value();
  const TestStream mine, blocking(0);
  std::vector<GatherCase> cases;
  for (uint64_t seed = 0; seed < 6; ++seed)
    cases.push_back(RandomGatherCase(seed, CaseSize::kSmall));
  for (const cudaStream_t reader :
       {mine.handle, blocking.handle, cudaStreamLegacy, cudaStreamPerThread}) {
    std::vector<std::shared_ptr<device::Output>> outputs;
    std::vector<std::vector<std::byte>> read;
    for (const GatherCase& made : cases) {
      outputs.push_back(stream->Gather(made.plan, made.expected.size(), nullptr).value());
      read.emplace_back(made.expected.size());
      ASSERT_TRUE(outputs.back()->ShareWith(reinterpret_cast<uintptr_t>(reader)).ok());
      // Under way when the output is given back, as is so with a consumer's kernels.
      ASSERT_EQ(cudaMemcpyAsync(read.back().data(), outputs.back()->data(), read.back().size(),
                                cudaMemcpyDeviceToHost, reader),
                cudaSuccess);
      if (outputs.size() % 2 == 1) outputs.back() = nullptr;
    }
    // The gathers first, and all of them.
    ASSERT_TRUE(outputs.back()->Wait().ok());
    ASSERT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
    for (size_t i = 0; i < cases.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(ExpectRows(cases[i], read[i]));
  }
}

TEST_F(EmulatedGpuTest, TheHostDoesNotTouchTheGpusMemory) {
  Machine machine;
  machine.hides_memory = true;
  SetMachine(machine);
  const auto differences = SelfTest(0, 5, /*rounds=*/1, /*large=*/false);
  ASSERT_TRUE(differences.ok()) << differences.status();
  EXPECT_EQ(*differences, std::vector<std::string>());
}

TEST_F(EmulatedGpuTest, BeforeComputeCapabilityNineThereIsNoBulkKernel) {
  Machine machine;
  machine.major = 8;
  SetMachine(machine);
  EXPECT_TRUE(absl::IsUnimplemented(MeasureGather(0, "bulk", "host", {1, {{1, 64}}}, 1).status()));
  EXPECT_EQ(SelfTest(0, 6, 1, false).value(), std::vector<std::string>());
}

// Of a plan that is too long for an index of its tiles, the copy engine leaves a part that is not.
TEST_F(EmulatedGpuTest, TheEnginesListsFitWhereThePlansDoes) {
  device::GatherPlan plan;
  const std::vector<std::byte> source(1 << 20);
  PinnedMemory pinned = NewPinnedMemory(source.size()).value();
  std::memset(pinned.get(), 0, source.size());
  uint64_t output_bytes = 0;
  const auto add = [&](device::RowKind kind, uint64_t bytes) {
    plan.AddRow(kind, output_bytes, 0, bytes);
    plan.AddPiece(static_cast<const std::byte*>(pinned.get()), bytes);
    output_bytes += bytes;
  };
  for (int i = 0; i < 32; ++i) {
    add(device::RowKind::kFloat32ToFloat16, source.size());
    add(device::RowKind::kCopy, 1 << 16);
  }
  ASSERT_GT(plan.tile_count(), device::kMostIndexedTiles);
  constexpr size_t kBehind = 64 << 10;
  const size_t list_bytes = ListBytes(plan);
  PinnedMemory list = NewPinnedMemory(list_bytes + kBehind).value();
  DeviceMemory device = NewDeviceMemory(output_bytes + list_bytes + kBehind).value();
  auto* const host = static_cast<std::byte*>(list.get());
  auto* const to = static_cast<std::byte*>(device.get());
  std::memset(host, 0x5a, list_bytes + kBehind);
  ASSERT_EQ(cudaMemset(to, 0x5a, output_bytes + list_bytes + kBehind), cudaSuccess);
  const TestStream stream;
  ASSERT_TRUE(
      StartGather(GatherWay::kEngine, plan, to, host, to + output_bytes, {}, stream.handle).ok());
  ASSERT_EQ(cudaStreamSynchronize(stream.handle), cudaSuccess);
  std::vector<std::byte> behind(kBehind);
  ASSERT_EQ(
      cudaMemcpy(behind.data(), to + output_bytes + list_bytes, kBehind, cudaMemcpyDeviceToHost),
      cudaSuccess);
  const std::vector<std::byte> untouched(kBehind, std::byte{0x5a});
  EXPECT_EQ(behind, untouched);
  EXPECT_EQ(std::memcmp(host + list_bytes, untouched.data(), kBehind), 0);
}

TEST_F(EmulatedGpuTest, AGpuPerStream) {
  Machine machine;
  machine.gpus = 2;
  SetMachine(machine);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenGpu(2).status()));
  const GatherCase made = RandomGatherCase(7, CaseSize::kSmall);
  const auto first = Open(0), second = Open(1);
  EXPECT_EQ(StatsOfOpenGpus().size(), 2u);
  const auto of_first = first->NewStream(2).value(), of_second = second->NewStream(2).value();
  for (int round = 0; round < 3; ++round) {
    for (const int gpu : {1, 0}) {
      auto& stream = gpu == 0 ? *of_first : *of_second;
      const auto output = stream.Gather(made.plan, made.expected.size(), nullptr).value();
      int current = -1;
      ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, 0);  // As it was.
      ASSERT_EQ(cudaSetDevice(gpu), cudaSuccess);
      const TestStream reader;
      ASSERT_NO_FATAL_FAILURE(ExpectRows(made, Read(*output, made.expected.size(), reader.handle)));
      ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    }
  }
}

// What another stream captures goes on undisturbed, and can be run again.
TEST_F(EmulatedGpuTest, CapturesOfOthersAreLeftAlone) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  const GatherCase made = RandomGatherCase(9, CaseSize::kSmall);
  const TestStream captured, reader;
  ASSERT_EQ(cudaStreamBeginCapture(captured.handle, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (int i = 0; i < 4; ++i) {
    auto output = stream->Gather(made.plan, made.expected.size(), nullptr).value();
    // A capture cannot wait for work outside of it.
    ASSERT_TRUE(output->ShareWith(reinterpret_cast<uintptr_t>(captured.handle)).ok());
  }
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(captured.handle, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  const auto output = stream->Gather(made.plan, made.expected.size(), nullptr).value();
  ASSERT_NO_FATAL_FAILURE(ExpectRows(made, Read(*output, made.expected.size(), reader.handle)));
}

TEST_F(EmulatedGpuTest, DrawsKernelsAreLikeTheirTwins) {
  const auto gpu = Open();
  const auto backend = gpu->NewDrawBackend(nullptr).value();
  EXPECT_EQ(CheckDraws(*backend, 11, /*rounds=*/8).value(), std::vector<std::string>());
}

// The fastest of the ways that there are, of every class of pieces.
TEST_F(EmulatedGpuTest, WaysAreChosenByMeasuring) {
  const auto gpu = std::static_pointer_cast<GpuDevice>(Open());
  for (const int major : {8, 9}) {
    const Choices choices =
        ChooseWays(Place::kDevice, major, gpu->blocks(), /*bytes=*/256 << 10).value();
    ASSERT_EQ(choices.classes.size(), 4u);
    EXPECT_GT(choices.copy_bytes_per_second, 0);
    for (size_t i = 0; i < choices.classes.size(); ++i) {
      const device::ClassChoice& choice = choices.classes[i];
      EXPECT_GT(choice.bytes_per_second, 0);
      EXPECT_EQ(choice.of_copy, choice.bytes_per_second / choices.copy_bytes_per_second);
      EXPECT_EQ(choice.way, Name(choices.ways[i]));
      EXPECT_EQ(choices.For(choice.piece_bytes_below - 1), choices.ways[i]);
      if (major == 8) EXPECT_NE(choice.way, "bulk");
      if (i < 2) EXPECT_NE(choice.way, "engine");  // Small pieces.
    }
  }
}

TEST_F(EmulatedGpuTest, MeasuresWhatItIsAskedFor) {
  for (const char* const place : {"host", "device"}) {
    EXPECT_GT(MeasureCopy(0, place, 1 << 20, 2).value(), 0);
    for (const char* const way : {"lanes", "bulk", "engine"}) {
      EXPECT_GT(MeasureGather(0, way, place, {8, {{2, 3000}, {1, 40}}, 0.3}, 2).value(), 0) << way;
    }
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(MeasureGather(0, "magic", "host", {1, {{1, 64}}}, 1).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(MeasureGather(0, "lanes", "host", {0, {{1, 64}}}, 1).status()));
}

}  // namespace
}  // namespace gear_reverb::cuda
