// When the memory of outputs is used again, and what is never waited for.
#include "native/cuda/emulated_gpu_fixture.h"

namespace gear_reverb::cuda {
namespace {

class EmulatedOutputsTest : public EmulatedGpuTest {
 protected:
  std::shared_ptr<device::Output> Gather(device::GatherStream& stream) {
    return stream.Gather(made.plan, made.expected.size(), nullptr).value();
  }
  // Reads the output on a stream, later.
  void ReadLater(const device::Output& output, cudaStream_t stream, std::vector<std::byte>* read) {
    read->resize(made.expected.size());
    ASSERT_EQ(
        cudaMemcpyAsync(read->data(), output.data(), read->size(), cudaMemcpyDeviceToHost, stream),
        cudaSuccess);
  }

  // What a stream has read, once it is done.
  void ExpectAll(const std::vector<std::vector<std::byte>>& read, const TestStream& reader) {
    ASSERT_EQ(cudaStreamSynchronize(reader.handle), cudaSuccess);
    for (const auto& each : read) ASSERT_NO_FATAL_FAILURE(ExpectRows(made, each));
  }

  const GatherCase made = RandomGatherCase(21, CaseSize::kSmall);
  const GatherCase other = RandomGatherCase(22, CaseSize::kSmall);
};

// As XLA does it: one stream is told of, and another reads on after the memory was given back.
TEST_F(EmulatedOutputsTest, AFenceComesBeforeMemoryIsUsedAgain) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  const TestStream told, reader;
  std::vector<std::vector<std::byte>> read(8);
  for (auto& each : read) {
    auto output = Gather(*stream);
    output->WantFence();
    ASSERT_TRUE(output->ShareWith(reinterpret_cast<uintptr_t>(told.handle)).ok());
    ASSERT_TRUE(output->LendTo(reader.handle).ok());
    ASSERT_NO_FATAL_FAILURE(ReadLater(*output, reader.handle, &each));
    const std::byte* const data = output->data();
    output = nullptr;
    output = stream->Gather(other.plan, other.expected.size(), nullptr).value();
    ASSERT_NE(output->data(), data);
    ASSERT_TRUE(output->Wait().ok());  // Whatever it wrote is written now.
    ASSERT_TRUE(output->fence_wanted());
    // A fence that fails is as if it had not been.
    EXPECT_THROW((void)output->PassFence([](device::Stream) { throw 1; }), int);
    ASSERT_TRUE(output->fence_wanted());
    const auto wait = [&](device::Stream fence) {
      cudaEvent_t event = nullptr;
      ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
      ASSERT_EQ(cudaEventRecord(event, reader.handle), cudaSuccess);
      ASSERT_EQ(cudaStreamWaitEvent(static_cast<cudaStream_t>(fence), event, 0), cudaSuccess);
      ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
    };
    ASSERT_TRUE(output->PassFence(wait).ok());
    ASSERT_FALSE(output->fence_wanted());
    output = nullptr;
    for (int i = 0; i < 3; ++i) {
      output = stream->Gather(other.plan, other.expected.size(), nullptr).value();
    }
    ASSERT_TRUE(output->Wait().ok());
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAll(read, reader));
}

TEST_F(EmulatedOutputsTest, AFenceIsBesideTheStreamsThatWereToldOf) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  const TestStream reader;
  std::vector<std::vector<std::byte>> read(4);
  for (auto& each : read) {
    auto output = Gather(*stream);
    output->WantFence();
    ASSERT_TRUE(output->ShareWith(reinterpret_cast<uintptr_t>(reader.handle)).ok());
    ASSERT_NO_FATAL_FAILURE(ReadLater(*output, reader.handle, &each));
    output = nullptr;
    output = stream->Gather(other.plan, other.expected.size(), nullptr).value();
    ASSERT_TRUE(output->PassFence([](device::Stream) {}).ok());
    const auto again = stream->Gather(other.plan, other.expected.size(), nullptr).value();
    ASSERT_TRUE(again->Wait().ok());
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAll(read, reader));
}

// Nothing is waited for when an output goes that somebody may still read; a capture goes on.
TEST_F(EmulatedOutputsTest, WhatUnknownStreamsReadIsFreedLater) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  const TestStream reader, captured;
  std::vector<std::byte> read;
  auto output = Gather(*stream);
  ASSERT_TRUE(output->ShareWith(0).ok());
  ASSERT_NO_FATAL_FAILURE(ReadLater(*output, reader.handle, &read));
  ASSERT_EQ(cudaStreamBeginCapture(captured.handle, cudaStreamCaptureModeGlobal), cudaSuccess);
  FailCalls("cudaFree", cudaErrorInvalidValue);
  output = nullptr;
  EXPECT_EQ(emulation::FailedCalls(), 0);
  emulation::FailNoCalls();
  for (int i = 0; i < 3; ++i) ASSERT_NE(Gather(*stream), nullptr);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(captured.handle, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(reader.handle), cudaSuccess);
  ASSERT_NO_FATAL_FAILURE(ExpectRows(made, read));
}

TEST_F(EmulatedOutputsTest, AStreamMayBeGone) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  auto output = Gather(*stream);
  std::vector<std::byte> read;
  {
    const TestStream reader;
    ASSERT_TRUE(output->ShareWith(reinterpret_cast<uintptr_t>(reader.handle)).ok());
    ASSERT_NO_FATAL_FAILURE(ReadLater(*output, reader.handle, &read));
  }
  output = nullptr;
  for (int i = 0; i < 3; ++i) ASSERT_NE(Gather(*stream), nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_NO_FATAL_FAILURE(ExpectRows(made, read));
}

// More outputs than are kept are not freed where they go, which would wait.
TEST_F(EmulatedOutputsTest, SurplusIsFreedByTheNextGather) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(1).value();
  std::vector<std::shared_ptr<device::Output>> outputs;
  for (int i = 0; i < 4; ++i) outputs.push_back(Gather(*stream));
  const size_t before = emulation::InUse().device_bytes;
  FailCalls("cudaFree", cudaErrorInvalidValue);
  outputs.clear();
  EXPECT_EQ(emulation::FailedCalls(), 0);
  emulation::FailNoCalls();
  EXPECT_EQ(emulation::InUse().device_bytes, before);
  auto output = Gather(*stream);
  EXPECT_LT(emulation::InUse().device_bytes, before / 2 + 1);
}

// Once memory is there, a batch waits for nothing, as long as the GPU is not far behind; and what
// it holds has a bound if it is.
TEST_F(EmulatedOutputsTest, TheHostWaitsOnlyWhereTheGpuIsFarBehind) {
  const auto gpu = Open();
  const auto stream = gpu->NewStream(4).value();
  const TestStream reader;
  const auto gather = [&] {
    const auto output = Gather(*stream);
    ASSERT_TRUE(output->ShareWith(reinterpret_cast<uintptr_t>(reader.handle)).ok());
  };
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(gather());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (const char* const call :
       {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy",
        "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost"}) {
    FailCalls(call, cudaErrorInvalidValue);
    for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(gather()) << call;
    EXPECT_EQ(emulation::FailedCalls(), 0) << call;
    emulation::FailNoCalls();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  const size_t pinned = emulation::InUse().pinned_bytes;
  for (int i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(gather());
  EXPECT_LT(emulation::InUse().pinned_bytes, 4 * pinned);
}

}  // namespace
}  // namespace gear_reverb::cuda
