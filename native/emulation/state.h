// What the emulated runtime keeps. All of it under one lock, which also whoever runs work of a
// stream holds.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <emulated_machine.h>

namespace gear_reverb::emulation {

// That some work has been done, and when.
struct Mark {
  std::shared_ptr<CUstream_st> stream;
  bool done = false;
  double seconds = 0;
};
using MarkPtr = std::shared_ptr<Mark>;

struct Work {
  std::function<void()> run;
  std::vector<MarkPtr> after;
  MarkPtr done;
};

}  // namespace gear_reverb::emulation

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st : CUgraph_st {};

// Work is put off for as long as it may be: until somebody waits for it. Whatever counts on work
// having been done without waiting for it is found out.
struct CUstream_st {
  int gpu = 0;
  bool blocking = false;  // Takes turns with the legacy stream.
  std::deque<gear_reverb::emulation::Work> work;
  gear_reverb::emulation::MarkPtr last;
  // While it is captured.
  std::unique_ptr<CUgraph_st> graph;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalidated = false;
  size_t thread = 0;  // That began the capture.
};

struct CUevent_st {
  int gpu = 0;
  bool times = false, captured = false;
  gear_reverb::emulation::MarkPtr last;
};

namespace gear_reverb::emulation {

struct Range {
  size_t bytes = 0;
  int gpu = -1;  // -1: of the host.
  bool allocated = false;
};

struct State {
  State();

  std::recursive_mutex mutex;
  Machine machine;
  struct Failing {
    cudaError_t error;
    int after, count;
  };
  std::map<std::string, Failing> failing;  // By name of the call.
  int failed = 0;
  std::vector<std::shared_ptr<CUstream_st>> streams;
  std::map<std::pair<int, size_t>, std::shared_ptr<CUstream_st>>
      implicit;  // By GPU and thread; 0: legacy.
  size_t events = 0;

  // Memory of the GPUs. The host cannot reach it but while work is done.
  std::byte* device_memory;
  std::map<std::byte*, size_t> free;
  std::map<std::byte*, Range> ranges;  // Allocated or registered.
  size_t device_bytes = 0;
  int visible = 0;
  bool is_visible = false;
};
State& TheState();
constexpr size_t kDeviceAddressBytes = size_t{2} << 30;

// Lets this thread reach the GPUs' memory.
class Visible {
 public:
  Visible();
  ~Visible();
};

// Of the calling thread.
extern thread_local int current_gpu;
size_t ThisThread();
cudaError_t NoteError(cudaError_t error);

// The allocation or registration that holds all of [memory, memory + bytes); null if none does.
const Range* RangeOf(const void* memory, size_t bytes);
inline bool IsDevice(const Range* range) { return range != nullptr && range->gpu >= 0; }

std::shared_ptr<CUstream_st> StreamOf(cudaStream_t handle);
// `what` after all that the stream has been given.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> what,
                    std::vector<MarkPtr> after = {}, MarkPtr* done = nullptr);
void RunUntil(const Mark& mark);
void RunAll(CUstream_st& stream);
void RunEverything();
// That calls which could wait for a capture are not made while there is one.
cudaError_t CheckCaptures();

enum class Calls { kAlways, kNotWhileCaptured };

// One call of the runtime, with the lock held.
template <typename Body>
cudaError_t Call(const char* name, Calls calls, Body body) {
  const std::lock_guard lock(TheState().mutex);
  cudaError_t error = cudaSuccess;
  if (const auto found = TheState().failing.find(name); found != TheState().failing.end()) {
    State::Failing& failing = found->second;
    if (failing.after > 0) {
      --failing.after;
    } else if (failing.count > 0) {
      --failing.count;
      ++TheState().failed;
      return NoteError(failing.error);
    }
  }
  if (calls == Calls::kNotWhileCaptured) error = CheckCaptures();
  if (error == cudaSuccess) error = body();
  return NoteError(error);
}

}  // namespace gear_reverb::emulation
