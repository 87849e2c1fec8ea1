// What goes wrong with GPUs, on one that is emulated: calls that fail, memory that runs out or
// cannot be registered, and machines that cannot do it.
#include <string>

#include "absl/strings/match.h"
#include "native/base/log.h"
#include "native/cuda/cuda.h"
#include "native/cuda/emulated_gpu_fixture.h"
#include "native/cuda/gpu_device.h"
#include "native/cuda/select_backend.h"
#include "native/device/segment_source.h"

namespace gear_reverb::cuda {
namespace {

class EmulatedFailuresTest : public EmulatedGpuTest {};

bool Says(const absl::Status& status, const char* text) {
  return absl::StrContains(status.message(), text);
}

TEST_F(EmulatedFailuresTest, AGpuThatIsTooOldIsRefused) {
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

TEST_F(EmulatedFailuresTest, ADriverThatIsTooOldOrNotThereIsNamed) {
  Machine machine;
  machine.driver = 12020;
  SetMachine(machine);
  EXPECT_TRUE(absl::IsFailedPrecondition(Availability()));
  EXPECT_TRUE(Says(Availability(),
                   "The CUDA driver is too old: it is of CUDA 12.2, the kernels are "
                   "of CUDA 13.0."))
      << Availability();
  EXPECT_EQ(OpenGpu(0).status(), Availability());
  machine.driver = 0;
  SetMachine(machine);
  EXPECT_TRUE(Says(Availability(), "There is no CUDA driver on this machine.")) << Availability();
  EXPECT_EQ(OpenGpu(0).status(), Availability());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(EmulatedFailuresTest, AnErrorOfAnyCallIsSaidAndNothingIsLost) {
  const GatherCase made = RandomGatherCase(8, CaseSize::kSmall);
  Machine machine;
  machine.gpus = 2;
  SetMachine(machine);
  const TestStream reader;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);  // So that there is another to set.
  for (const char* const call :
       {"cudaStreamCreateWithFlags", "cudaMalloc", "cudaHostAlloc", "cudaEventCreateWithFlags",
        "cudaEventRecord", "cudaMemcpyAsync", "cudaLaunchKernelEx", "cudaStreamWaitEvent",
        "cudaSetDevice", "cudaGetDeviceProperties", "cudaDeviceGetAttribute", "cudaEventQuery",
        "cudaStreamIsCapturing", "cudaThreadExchangeStreamCaptureMode", "cudaGetDeviceCount",
        "cudaDriverGetVersion"}) {
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
      if (after == 0) EXPECT_EQ(emulation::FailedCalls(), 1) << call;
      emulation::FailNoCalls();
      ASSERT_EQ(cudaGetLastError(), cudaSuccess) << call;
      ASSERT_TRUE(run().ok()) << call;
    }
  }
}

// What cannot be reported, since it happens in a destructor, is logged, once.
TEST_F(EmulatedFailuresTest, AFailureToGiveBackIsToldOnce) {
  std::vector<std::string> warnings;
  base::SetLogSink([&](base::LogLevel, const std::string& text) { warnings.push_back(text); });
  NoteIfCudaError(cudaErrorCudartUnloading, "cudaFree");
  EXPECT_TRUE(warnings.empty());
  for (int i = 0; i < 2; ++i) NoteIfCudaError(cudaErrorInvalidValue, "a test's call");
  base::SetLogSink(nullptr);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(warnings[0], "CUDA: a test's call failed")) << warnings[0];
}

// An arena, or what a client sees of one.
class TestSource final : public device::SegmentSource {
 public:
  TestSource(std::shared_ptr<memory::Arena> arena, bool read_only)
      : arena_(std::move(arena)), read_only_(read_only) {}
  const void* memory() const override { return this; }
  absl::Status Keep() override {
    arena_->KeepMemory();
    return absl::OkStatus();
  }
  std::vector<memory::SegmentView> segments() const override { return arena_->segments(); }
  bool read_only() const override { return read_only_; }

 private:
  const std::shared_ptr<memory::Arena> arena_;
  const bool read_only_;
};

// A gather of memory of an arena.
struct FromArena {
  explicit FromArena(device::Device& opened, bool read_only = false)
      : gpu(static_cast<GpuDevice&>(opened)),
        source(std::make_shared<TestSource>(arena, read_only)),
        stream(gpu.NewStream(2).value()) {
    for (size_t i = 0; i < kBytes; ++i) block.data()[i] = static_cast<std::byte>(i * 7);
    plan.AddRow(device::RowKind::kCopy, 0, 0, kBytes);
    plan.AddPiece(block.data(), kBytes);
    stream->SetSources(source, nullptr);
  }
  void WaitUntilTried() { gpu.SegmentsOf(source)->WaitUntilTried(); }
  // Of the batch, bytes that had to be copied to pinned memory first.
  uint64_t Gather() {
    const uint64_t before = gpu.stats().staged_bytes;
    const auto output = stream->Gather(plan, kBytes, nullptr).value();
    EXPECT_TRUE(output->Wait().ok());
    std::vector<std::byte> read(kBytes);
    EXPECT_EQ(cudaMemcpy(read.data(), output->data(), kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(std::memcmp(read.data(), block.data(), kBytes), 0);
    return gpu.stats().staged_bytes - before;
  }
  std::string error() const { return gpu.stats().registration_error; }

  static constexpr size_t kBytes = 100'000;
  std::shared_ptr<memory::Arena> arena = memory::Arena::Create({.segment_bytes = 1 << 20});
  memory::Block block = arena->Allocate(kBytes).value();
  GpuDevice& gpu;
  const std::shared_ptr<TestSource> source;
  const std::unique_ptr<device::GatherStream> stream;
  device::GatherPlan plan;
};

TEST_F(EmulatedFailuresTest, WhatCannotBeRegisteredIsStagedAndTriedAgain) {
  for (const char* const call : {"cudaHostRegister", "cudaHostGetDevicePointer"}) {
    const auto gpu = Open();
    FailCalls(call, cudaErrorMemoryAllocation, /*after=*/0, /*count=*/1000);
    FromArena from(*gpu);
    from.WaitUntilTried();
    EXPECT_EQ(from.Gather(), FromArena::kBytes) << call;
    EXPECT_TRUE(absl::StrContains(from.error(), call)) << from.error();
    EXPECT_EQ(emulation::InUse().registrations, 0u);
    emulation::FailNoCalls();
    const absl::Time late = absl::Now() + absl::Seconds(30);
    while (from.Gather() > 0 && absl::Now() < late) absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(from.Gather(), 0u) << call;
    EXPECT_GT(gpu->stats().registered_bytes, 0u);
    EXPECT_EQ(emulation::InUse().registrations, 1u);
  }
}

TEST_F(EmulatedFailuresTest, ReadOnlyMemoryIsRegisteredWhereTheDriverCan) {
  for (const bool can : {true, false}) {
    Machine machine;
    machine.registers_read_only = can;
    SetMachine(machine);
    const auto gpu = Open();
    FromArena from(*gpu, /*read_only=*/true);
    from.WaitUntilTried();
    EXPECT_EQ(from.Gather(), can ? 0u : FromArena::kBytes);
    EXPECT_EQ(from.error(), can ? "" : "The GPU's driver registers no memory that is read-only.");
  }
}

TEST_F(EmulatedFailuresTest, RegistrationIsBoundedByTheEnvironment) {
  setenv("GEAR_REVERB_PINNED_BYTES", "1000", /*overwrite=*/1);
  {
    const auto gpu = Open();
    FromArena from(*gpu);
    from.WaitUntilTried();
    EXPECT_EQ(from.Gather(), FromArena::kBytes);
    EXPECT_EQ(gpu->stats().registered_limit_bytes, 1000u);
    EXPECT_NE(from.error(), "");
  }
  std::vector<std::string> warnings;
  base::SetLogSink([&](base::LogLevel, const std::string& text) { warnings.push_back(text); });
  setenv("GEAR_REVERB_PINNED_BYTES", "64GB", /*overwrite=*/1);
  const auto gpu = Open();
  base::SetLogSink(nullptr);
  unsetenv("GEAR_REVERB_PINNED_BYTES");
  EXPECT_GT(gpu->stats().registered_limit_bytes, 1000u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(warnings[0], "GEAR_REVERB_PINNED_BYTES is '64GB'")) << warnings[0];
}

TEST_F(EmulatedFailuresTest, WithoutMemoryToMeasureWithRowsGoByLanes) {
  Machine machine;
  machine.memory_bytes = 4 << 20;
  SetMachine(machine);
  unsetenv("GEAR_REVERB_MEASURE");
  const auto gpu = Open();
  setenv("GEAR_REVERB_MEASURE", "0", /*overwrite=*/1);
  EXPECT_TRUE(absl::StrContains(gpu->stats().choices_error, "out of memory"));
  FromArena from(*gpu);
  EXPECT_LE(from.Gather(), FromArena::kBytes);
}

}  // namespace
}  // namespace gear_reverb::cuda
