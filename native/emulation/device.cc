// Devices, errors, and the machine that tests ask for.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "native/emulation/state.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gear_reverb::emulation {

thread_local int current_gpu = 0;

namespace {
thread_local cudaError_t last_error = cudaSuccess;
constexpr int kRuntimeVersion = 13000;
}  // namespace

State::State() {
  void* const memory = mmap(nullptr, kDeviceAddressBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  device_memory = static_cast<std::byte*>(memory);
  free[device_memory] = kDeviceAddressBytes;
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(device_memory, kDeviceAddressBytes);
#endif
}

State& TheState() {
  static auto& state = *new State;
  return state;
}

size_t ThisThread() {
  static std::atomic<size_t> threads{0};
  static thread_local const size_t number = ++threads;
  return number;
}

cudaError_t NoteError(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void SetMachine(const Machine& machine) {
  const std::lock_guard lock(TheState().mutex);
  TheState().machine = machine;
}
void FailCalls(const std::string& name, cudaError_t error, int after, int count) {
  const std::lock_guard lock(TheState().mutex);
  TheState().failing[name] = {error, after, count};
}
void FailNoCalls() {
  const std::lock_guard lock(TheState().mutex);
  TheState().failing.clear();
  TheState().failed = 0;
}
int FailedCalls() {
  const std::lock_guard lock(TheState().mutex);
  return TheState().failed;
}
Use InUse() {
  const std::lock_guard lock(TheState().mutex);
  Use use;
  use.device_bytes = TheState().device_bytes;
  for (const auto& [base, range] : TheState().ranges) {
    if (range.gpu >= 0) continue;
    if (range.allocated) {
      use.pinned_bytes += range.bytes;
    } else {
      ++use.registrations;
    }
  }
  use.streams = TheState().streams.size();
  use.events = TheState().events;
  return use;
}

}  // namespace gear_reverb::emulation

using namespace gear_reverb::emulation;  // NOLINT: the functions are CUDA's.

cudaError_t cudaDriverGetVersion(int* version) {
  return Call("cudaDriverGetVersion", Calls::kAlways, [&] {
    *version = TheState().machine.driver;
    return cudaSuccess;
  });
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  return Call("cudaGetDeviceCount", Calls::kAlways, [&] {
    if (TheState().machine.driver < kRuntimeVersion) return cudaErrorInsufficientDriver;
    *count = TheState().machine.gpus;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Call("cudaGetDeviceProperties", Calls::kAlways, [&] {
    if (device < 0 || device >= TheState().machine.gpus) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "Emulated GPU %d", device);
    properties->totalGlobalMem = TheState().machine.memory_bytes;
    properties->major = TheState().machine.major;
    properties->multiProcessorCount = 1;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Call("cudaDeviceGetAttribute", Calls::kAlways, [&] {
    if (device < 0 || device >= TheState().machine.gpus) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount: *value = 1; break;
      case cudaDevAttrComputeCapabilityMajor: *value = TheState().machine.major; break;
      case cudaDevAttrHostRegisterReadOnlySupported:
        *value = TheState().machine.registers_read_only;
        break;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device) {
  std::snprintf(address, static_cast<size_t>(bytes), "ffff:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_gpu;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return Call("cudaSetDevice", Calls::kAlways, [&] {
    if (device < 0 || device >= TheState().machine.gpus) return cudaErrorInvalidDevice;
    current_gpu = device;
    return cudaSuccess;
  });
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an emulated error";
}
