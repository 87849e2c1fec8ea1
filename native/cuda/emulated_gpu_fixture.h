// A GPU that is emulated, and that all is given back to it.
#pragma once

#include <cuda_runtime_api.h>
#include <emulated_machine.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "native/cuda/gpu.h"
#include "native/device/gather_cases.h"

namespace gear_reverb::cuda {

using device::CaseSize;
using device::GatherCase;
using emulation::FailCalls;
using emulation::Machine;
using emulation::SetMachine;

// Measuring takes minutes where there are no GPU's threads.
inline const int measured = setenv("GEAR_REVERB_MEASURE", "0", /*overwrite=*/1);

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

struct TestStream {
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&handle, flags), cudaSuccess);
  }
  ~TestStream() { EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess); }
  cudaStream_t handle = nullptr;
};

}  // namespace gear_reverb::cuda
