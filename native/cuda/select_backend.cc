#include "native/cuda/select_backend.h"

#include "native/cuda/cuda.h"
#include "native/cuda/resources.h"
#include "native/cuda/select_kernels.h"

namespace gear_reverb::cuda {
namespace {

using device::ClaimTable;
using device::DrawOutput;
using device::DrawState;
using device::SelectionView;
using device::SlotState;

class Gpu final : public device::SelectBackend {
 public:
  explicit Gpu(int index) : index_(index) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    void* memory = nullptr;
    GR_RETURN_IF_ERROR(On("cudaMalloc", [&] { return cudaMalloc(&memory, bytes); }));
    return memory;
  }
  void Free(void* memory) override {
    const CurrentGpu current(index_);
    NoteIfCudaError(cudaFree(memory), "cudaFree");
  }
  absl::Status Fill(void* memory, int byte, size_t bytes, device::Stream stream) override {
    return On("cudaMemsetAsync",
              [&] { return cudaMemsetAsync(memory, byte, bytes, ToStream(stream)); });
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, device::Stream stream) override {
    GR_RETURN_IF_ERROR(On("cudaMemcpyAsync", [&] {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, ToStream(stream));
    }));
    // CUDA does not promise to have done with such memory on return.
    GR_ASSIGN_OR_RETURN(const bool pageable, IsPageable(to));
    GR_ASSIGN_OR_RETURN(const bool from_pageable, IsPageable(from));
    return pageable || from_pageable ? Synchronize(stream) : absl::OkStatus();
  }
  absl::Status Synchronize(device::Stream stream) override {
    return On("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(ToStream(stream)); });
  }
  absl::Status Write(const SelectionView& view, const SlotState* states, uint32_t n,
                     const ClaimTable& claims, device::Stream stream) override {
    return On("the launch of Write",
              [&] { return LaunchWrite(view, states, n, claims, ToStream(stream)); });
  }
  absl::Status Resum(const SelectionView& view, const SlotState* states, uint32_t n,
                     bool members_changed, device::Stream stream) override {
    return On("the launch of Resum",
              [&] { return LaunchResum(view, states, n, members_changed, ToStream(stream)); });
  }
  absl::Status Draw(const SelectionView& view, DrawState* state, uint32_t n, double beta,
                    const DrawOutput& output, device::Stream stream) override {
    return On("the launch of Draw",
              [&] { return LaunchDraw(view, state, n, beta, output, ToStream(stream)); });
  }
  absl::Status Top(const SelectionView& view, uint32_t k, const DrawOutput& output,
                   device::Stream stream) override {
    return On("the launch of Top", [&] { return LaunchTop(view, k, output, ToStream(stream)); });
  }

 private:
  absl::StatusOr<bool> IsPageable(const void* memory) {
    cudaPointerAttributes attributes;
    GR_RETURN_IF_ERROR(On("cudaPointerGetAttributes",
                          [&] { return cudaPointerGetAttributes(&attributes, memory); }));
    return attributes.type != cudaMemoryTypeHost && attributes.type != cudaMemoryTypeDevice;
  }

  static cudaStream_t ToStream(device::Stream stream) { return static_cast<cudaStream_t>(stream); }

  template <typename Call>
  absl::Status On(const char* name, Call call) {
    const CurrentGpu current(index_);
    GR_RETURN_IF_ERROR(current.status());
    return ToStatus(call(), name);
  }

  const int index_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<device::SelectBackend>> MakeSelectBackend(int index) {
  GR_ASSIGN_OR_RETURN(const std::vector<GpuInfo> gpus, Gpus());
  if (index < 0 || static_cast<size_t>(index) >= gpus.size()) {
    return base::InvalidArgument("There is no GPU ", index, ": this machine has ", gpus.size(),
                                 ".");
  }
  GR_RETURN_IF_ERROR(CheckCapability(index));
  return std::make_shared<Gpu>(index);
}

}  // namespace gear_reverb::cuda
