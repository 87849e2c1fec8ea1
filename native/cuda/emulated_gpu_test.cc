// What only a GPU that is emulated can show: memory that runs out, calls that fail, captures that
// must not be disturbed, several GPUs, and that all is given back.
#include <cuda_runtime_api.h>
#include <emulated_machine.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "native/cuda/cuda.h"
#include "native/cuda/gpu.h"
#include "native/cuda/gpu_device.h"
#include "native/cuda/measure.h"
#include "native/cuda/select_backend.h"
#include "native/device/gather_cases.h"
#include "native/device/resident_table.h"
#include "native/device/resident_table_fixture.h"

namespace gear_reverb::cuda {
namespace {

using device::CaseSize;
using device::GatherCase;
using emulation::FailCalls;
using emulation::Machine;
using emulation::SetMachine;

// Measuring takes minutes where there are no GPU's threads.
const int measured = setenv("GEAR_REVERB_MEASURE", "0", /*overwrite=*/1);

class EmulatedGpuTest : public ::testing::Test {
 protected:
  void TearDown() override {
    emulation::FailNoCalls();
    SetMachine({});
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    const emulation::Use use = emulation::InUse();
    EXPECT_EQ(use.device_bytes, 0u);
    EXPECT_EQ(use.pinned_bytes, 0u);
    EXPECT_EQ(use.registrations, 0u);
    EXPECT_EQ(use.streams, 0u);
    EXPECT_EQ(use.events, 0u);
  }

  static std::shared_ptr<device::Device> Open(int index = 0) { return OpenGpu(index).value(); }

  // The bytes of an output, as a consumer on a stream of its own reads them.
  static std::vector<std::byte> Read(device::Output& output, size_t bytes, cudaStream_t stream) {
    std::vector<std::byte> read(bytes);
    EXPECT_TRUE(output.ShareWith(reinterpret_cast<uintptr_t>(stream)).ok());
    EXPECT_EQ(cudaMemcpyAsync(read.data(), output.data(), bytes, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return read;
  }
  // Rows' own bytes; what lies between them is not written.
  static void ExpectRows(const GatherCase& made, const std::vector<std::byte>& output) {
    for (const device::Row& row : made.plan.rows()) {
      const size_t bytes =
          row.window_bytes / device::SourceBytes(row.kind) * device::OutputBytes(row.kind);
      ASSERT_EQ(std::memcmp(output.data() + row.destination, made.expected.data() + row.destination,
                            bytes),
                0);
    }
  }
};

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&handle, flags), cudaSuccess);
  }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess); }
  cudaStream_t handle = nullptr;
};

// Outputs of many sizes, read late and out of order, whose memory is used again and again.
TEST_F(EmulatedGpuTest, OutputsAreReadAfterTheyAreWrittenAndBeforeTheyAreUsedAgain) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(2).value();
  const Stream mine, blocking(0);
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
  EXPECT_TRUE(absl::IsUnimplemented(MeasureGather(0, "bulk", "host", 1, 1, 64, 1).status()));
  EXPECT_EQ(SelfTest(0, 6, 1, false).value(), std::vector<std::string>());
}

TEST_F(EmulatedGpuTest, AGpuThatIsTooOldIsRefused) {
  Machine machine;
  machine.major = 7;
  SetMachine(machine);
  EXPECT_TRUE(absl::IsFailedPrecondition(Availability()));
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenGpu(0).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeSelectBackend(0).status()));
  machine.gpus = 0;
  SetMachine(machine);
  EXPECT_TRUE(absl::IsFailedPrecondition(Availability()));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
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
      const Stream reader;
      ASSERT_NO_FATAL_FAILURE(ExpectRows(made, Read(*output, made.expected.size(), reader.handle)));
      ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    }
  }
}

TEST_F(EmulatedGpuTest, AnErrorOfAnyCallIsSaidAndNothingIsLost) {
  const GatherCase made = RandomGatherCase(8, CaseSize::kSmall);
  const Stream reader;
  for (const char* const call :
       {"cudaStreamCreateWithFlags", "cudaMalloc", "cudaHostAlloc", "cudaEventCreateWithFlags",
        "cudaEventRecord", "cudaMemcpyAsync", "cudaLaunchKernelEx", "cudaStreamWaitEvent",
        "cudaSetDevice", "cudaGetDeviceProperties", "cudaDeviceGetAttribute"}) {
    for (int after = 0; after < 3; ++after) {
      FailCalls(call, cudaErrorMemoryAllocation, after);
      const auto run = [&]() -> absl::Status {
        GR_ASSIGN_OR_RETURN(const auto gpu, OpenGpu(0));
        GR_ASSIGN_OR_RETURN(const auto stream, gpu->NewStream(2));
        for (int i = 0; i < 3; ++i) {
          GR_ASSIGN_OR_RETURN(const auto output,
                              stream->Gather(made.plan, made.expected.size(), nullptr));
          GR_RETURN_IF_ERROR(output->ShareWith(reinterpret_cast<uintptr_t>(reader.handle)));
        }
        return absl::OkStatus();
      };
      const absl::Status status = run();
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << call << ": " << status;
      emulation::FailNoCalls();
      ASSERT_EQ(cudaGetLastError(), cudaSuccess) << call;
      ASSERT_TRUE(run().ok()) << call;
    }
  }
}

// What another stream captures goes on undisturbed, and can be run again.
TEST_F(EmulatedGpuTest, CapturesOfOthersAreLeftAlone) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  const GatherCase made = RandomGatherCase(9, CaseSize::kSmall);
  const Stream captured, reader;
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

TEST_F(EmulatedGpuTest, MeasuresWhatItIsAskedFor) {
  for (const char* const place : {"host", "device"}) {
    EXPECT_GT(MeasureCopy(0, place, 1 << 20, 2).value(), 0);
    for (const char* const way : {"lanes", "bulk", "engine"}) {
      EXPECT_GT(MeasureGather(0, way, place, 8, 2, 3000, 2).value(), 0) << way;
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MeasureGather(0, "magic", "host", 1, 1, 64, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MeasureGather(0, "lanes", "host", 0, 1, 64, 1).status()));
}

}  // namespace
}  // namespace gear_reverb::cuda
