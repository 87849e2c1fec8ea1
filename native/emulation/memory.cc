// Memory of the GPUs and of the host, and copies between them.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "native/emulation/state.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gear_reverb::emulation {
namespace {

// Between allocations, so that none is reached from its neighbour.
constexpr size_t kGranule = 512;
constexpr size_t kPoisonedBytes = size_t{1} << 20;
constexpr int kUnset = 0xb5;

void SetVisible(bool visible) {
  if (!TheState().machine.hides_memory && visible == TheState().is_visible) return;
  if (!visible && !TheState().machine.hides_memory) return;
  TheState().is_visible = visible;
  const int protection = visible ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (mprotect(TheState().device_memory, kDeviceAddressBytes, protection) != 0) std::abort();
}

void Poison(std::byte* memory, size_t bytes, bool allocated) {
  const Visible visible;
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(memory, bytes);
#endif
  std::memset(memory, kUnset, std::min(bytes, kPoisonedBytes));
#ifdef __SANITIZE_ADDRESS__
  if (!allocated) __asan_poison_memory_region(memory, bytes);
#else
  (void)allocated;
#endif
}

// Kernels load whole words of 16 bytes, which a GPU's allocations are made of.
size_t Words(size_t bytes) { return (bytes + 15) / 16 * 16; }

cudaError_t Allocate(void** memory, size_t bytes) {
  State& state = TheState();
  if (bytes == 0) {
    *memory = nullptr;
    return cudaSuccess;
  }
  const size_t room = (bytes + 2 * kGranule - 1) / kGranule * kGranule;
  if (state.device_bytes + bytes > state.machine.memory_bytes) return cudaErrorMemoryAllocation;
  for (const auto& place : state.free) {
    const auto [base, free] = place;
    if (free < room) continue;
    state.free.erase(base);
    if (free > room) state.free[base + room] = free - room;
    state.ranges[base] = {bytes, current_gpu, true};
    state.device_bytes += bytes;
    Poison(base, Words(bytes), true);
    *memory = base;
    return cudaSuccess;
  }
  return cudaErrorMemoryAllocation;
}

cudaError_t Free(void* memory) {
  State& state = TheState();
  if (memory == nullptr) return cudaSuccess;
  RunEverything();
  const auto found = state.ranges.find(static_cast<std::byte*>(memory));
  if (found == state.ranges.end() || found->second.gpu < 0) return cudaErrorInvalidValue;
  const size_t bytes = found->second.bytes;
  state.device_bytes -= bytes;
  state.ranges.erase(found);
  Poison(static_cast<std::byte*>(memory), Words(bytes), false);
  const auto place = state.free
                         .emplace(static_cast<std::byte*>(memory),
                                  (bytes + 2 * kGranule - 1) / kGranule * kGranule)
                         .first;
  if (const auto next = std::next(place);
      next != state.free.end() && place->first + place->second == next->first) {
    place->second += next->second;
    state.free.erase(next);
  }
  if (place != state.free.begin()) {
    const auto before = std::prev(place);
    if (before->first + before->second == place->first) {
      before->second += place->second;
      state.free.erase(place);
    }
  }
  return cudaSuccess;
}

cudaError_t CheckCopy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = IsDevice(RangeOf(to, bytes)), from_device = IsDevice(RangeOf(from, bytes));
  const auto in_device_memory = [](const void* memory) {
    const auto* const at = static_cast<const std::byte*>(memory);
    return at >= TheState().device_memory && at < TheState().device_memory + kDeviceAddressBytes;
  };
  // What is in the GPUs' memory must be allocated there.
  if (in_device_memory(to) != to_device || in_device_memory(from) != from_device) {
    return cudaErrorInvalidValue;
  }
  const bool right = kind == cudaMemcpyDefault ||
                     (kind == cudaMemcpyHostToDevice && to_device && !from_device) ||
                     (kind == cudaMemcpyDeviceToHost && !to_device && from_device) ||
                     (kind == cudaMemcpyDeviceToDevice && to_device && from_device);
  return right ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

Visible::Visible() {
  if (TheState().visible++ == 0) SetVisible(true);
}
Visible::~Visible() {
  if (--TheState().visible == 0) SetVisible(false);
}

const Range* RangeOf(const void* memory, size_t bytes) {
  auto* const at = const_cast<std::byte*>(static_cast<const std::byte*>(memory));
  const auto& ranges = TheState().ranges;
  auto found = ranges.upper_bound(at);
  if (found == ranges.begin()) return nullptr;
  --found;
  return at + bytes <= found->first + found->second.bytes ? &found->second : nullptr;
}

}  // namespace gear_reverb::emulation

using namespace gear_reverb::emulation;  // NOLINT: the functions are CUDA's.

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Call("cudaMalloc", Calls::kNotWhileCaptured, [&] { return Allocate(memory, bytes); });
}
cudaError_t cudaFree(void* memory) {
  return Call("cudaFree", Calls::kNotWhileCaptured, [&] { return Free(memory); });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return Call("cudaMemGetInfo", Calls::kAlways, [&] {
    *total = TheState().machine.memory_bytes;
    *free = *total - TheState().device_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Call("cudaHostAlloc", Calls::kNotWhileCaptured, [&] {
    *memory = std::aligned_alloc(kGranule, (bytes + kGranule - 1) / kGranule * kGranule);
    if (*memory == nullptr) return cudaErrorMemoryAllocation;
    TheState().ranges[static_cast<std::byte*>(*memory)] = {bytes, -1, true};
    return cudaSuccess;
  });
}
cudaError_t cudaFreeHost(void* memory) {
  return Call("cudaFreeHost", Calls::kNotWhileCaptured, [&] {
    RunEverything();
    const auto found = TheState().ranges.find(static_cast<std::byte*>(memory));
    if (found == TheState().ranges.end() || found->second.gpu >= 0 || !found->second.allocated) {
      return cudaErrorInvalidValue;
    }
    TheState().ranges.erase(found);
    std::free(memory);
    return cudaSuccess;
  });
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  return Call("cudaHostRegister", Calls::kNotWhileCaptured, [&] {
    auto* const base = static_cast<std::byte*>(memory);
    if (bytes == 0) return cudaErrorInvalidValue;
    if ((flags & cudaHostRegisterReadOnly) != 0 && !TheState().machine.registers_read_only) {
      return cudaErrorNotSupported;
    }
    const auto next = TheState().ranges.lower_bound(base);
    if (RangeOf(base, 1) != nullptr ||
        (next != TheState().ranges.end() && next->first < base + bytes)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    TheState().ranges[base] = {bytes, -1, false};
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* memory) {
  return Call("cudaHostUnregister", Calls::kNotWhileCaptured, [&] {
    RunEverything();
    const auto found = TheState().ranges.find(static_cast<std::byte*>(memory));
    if (found == TheState().ranges.end() || found->second.gpu >= 0 || found->second.allocated) {
      return cudaErrorHostMemoryNotRegistered;
    }
    TheState().ranges.erase(found);
    return cudaSuccess;
  });
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return Call("cudaHostGetDevicePointer", Calls::kAlways, [&] {
    *device = host;
    return RangeOf(host, 1) == nullptr ? cudaErrorInvalidValue : cudaSuccess;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return Call("cudaPointerGetAttributes", Calls::kAlways, [&] {
    const Range* const range = RangeOf(memory, 1);
    attributes->type = range == nullptr  ? cudaMemoryTypeUnregistered
                       : IsDevice(range) ? cudaMemoryTypeDevice
                                         : cudaMemoryTypeHost;
    return cudaSuccess;
  });
}

// Those two of the legacy stream, for which other streams do not matter unless they are blocking.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return Call("cudaMemcpy", Calls::kNotWhileCaptured, [&] {
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    RunAll(*StreamOf(nullptr));
    return error;
  });
}
cudaError_t cudaMemset(void* memory, int byte, size_t bytes) {
  return Call("cudaMemset", Calls::kNotWhileCaptured,
              [&] { return cudaMemsetAsync(memory, byte, bytes, nullptr); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Call("cudaMemcpyAsync", Calls::kAlways, [&] {
    if (const cudaError_t error = CheckCopy(to, from, bytes, kind); error != cudaSuccess) {
      return error;
    }
    return Enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  });
}
cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes, cudaStream_t stream) {
  return Call("cudaMemsetAsync", Calls::kAlways, [&] {
    if (bytes > 0 && RangeOf(memory, bytes) == nullptr) return cudaErrorInvalidValue;
    return Enqueue(stream, [=] { std::memset(memory, byte, bytes); });
  });
}
