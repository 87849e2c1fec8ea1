// Streams, events, captures, and the work that is put off.
#include <algorithm>
#include <chrono>
#include <utility>

#include "native/emulation/block.h"
#include "native/emulation/state.h"

namespace gear_reverb::emulation {
namespace {

thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

void RunOne(CUstream_st& stream) {
  Work work = std::move(stream.work.front());
  stream.work.pop_front();
  for (const MarkPtr& mark : work.after) RunUntil(*mark);
  {
    const Visible visible;
    if (work.run) work.run();
  }
  work.done->done = true;
  work.done->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  work.done->stream = nullptr;
}

std::vector<std::shared_ptr<CUstream_st>> AllStreams() {
  auto all = TheState().streams;
  for (const auto& [key, stream] : TheState().implicit) all.push_back(stream);
  return all;
}

bool IsLegacy(const std::shared_ptr<CUstream_st>& stream) {
  const auto found = TheState().implicit.find({stream->gpu, 0});
  return found != TheState().implicit.end() && found->second == stream;
}

}  // namespace

std::shared_ptr<CUstream_st> StreamOf(cudaStream_t handle) {
  State& state = TheState();
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    auto& stream = state.implicit[{current_gpu, handle == cudaStreamPerThread ? ThisThread() : 0}];
    if (stream == nullptr) {
      stream = std::make_shared<CUstream_st>();
      stream->gpu = current_gpu;
      stream->blocking = true;
    }
    return stream;
  }
  for (const auto& stream : state.streams) {
    if (stream.get() == handle) return stream;
  }
  return nullptr;
}

cudaError_t Enqueue(cudaStream_t handle, std::function<void()> what, std::vector<MarkPtr> after,
                    MarkPtr* done) {
  const auto stream = StreamOf(handle);
  if (stream == nullptr || stream->gpu != current_gpu) return cudaErrorInvalidResourceHandle;
  if (stream->graph != nullptr) {
    if (!after.empty()) {
      stream->invalidated = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (what) stream->graph->work.push_back(std::move(what));
    return stream->invalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  }
  const bool legacy = IsLegacy(stream);
  for (const auto& other : AllStreams()) {
    if (other == stream || !other->blocking || !stream->blocking || other->gpu != stream->gpu) {
      continue;
    }
    if (!legacy && !IsLegacy(other)) continue;
    if (other->graph != nullptr) {
      other->invalidated = true;
      return cudaErrorStreamCaptureImplicit;
    }
    if (other->last != nullptr) after.push_back(other->last);
  }
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  stream->last = mark;
  if (done != nullptr) *done = mark;
  stream->work.push_back({std::move(what), std::move(after), std::move(mark)});
  return cudaSuccess;
}

cudaError_t EnqueueKernel(const cudaLaunchConfig_t& config, std::function<void()> kernel) {
  return Call("cudaLaunchKernelEx", Calls::kAlways, [&] {
    const uint32_t blocks = config.gridDim.x, threads = config.blockDim.x;
    if (blocks == 0 || threads == 0 || threads > 1024) return cudaErrorInvalidValue;
    const size_t shared_bytes = config.dynamicSmemBytes;
    return Enqueue(config.stream, [=, kernel = std::move(kernel)] {
      RunGrid(blocks, threads, shared_bytes, kernel);
    });
  });
}

void RunUntil(const Mark& mark) {
  while (!mark.done) RunOne(*mark.stream);
}
void RunAll(CUstream_st& stream) {
  while (!stream.work.empty()) RunOne(stream);
}
void RunEverything() {
  for (const auto& stream : AllStreams()) RunAll(*stream);
}

cudaError_t CheckCaptures() {
  if (capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& stream : AllStreams()) {
    if (stream->graph == nullptr || stream->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool own = stream->thread == ThisThread();
    const bool all =
        stream->mode == cudaStreamCaptureModeGlobal && capture_mode == cudaStreamCaptureModeGlobal;
    if (!own && !all) continue;
    stream->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

}  // namespace gear_reverb::emulation

using namespace gear_reverb::emulation;  // NOLINT: the functions are CUDA's.

// Its work would have to be waited for, so a capture is lost in any mode of this thread's.
cudaError_t cudaDeviceSynchronize() {
  return Call("cudaDeviceSynchronize", Calls::kNotWhileCaptured, [] {
    for (const auto& stream : AllStreams()) {
      if (stream->graph == nullptr || stream->gpu != current_gpu) continue;
      stream->invalidated = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    RunEverything();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Call("cudaStreamCreateWithFlags", Calls::kAlways, [&] {
    auto made = std::make_shared<CUstream_st>();
    made->gpu = current_gpu;
    made->blocking = flags != cudaStreamNonBlocking;
    *stream = made.get();
    TheState().streams.push_back(std::move(made));
    return cudaSuccess;
  });
}
// Work that it was given is done all the same.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Call("cudaStreamDestroy", Calls::kAlways, [&] {
    const auto found = StreamOf(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    RunAll(*found);
    std::erase(TheState().streams, found);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return Call("cudaStreamSynchronize", Calls::kNotWhileCaptured, [&] {
    const auto stream = StreamOf(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->graph != nullptr) {
      stream->invalidated = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    RunAll(*stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Call("cudaStreamWaitEvent", Calls::kAlways, [&] {
    if (event->last == nullptr) return cudaSuccess;
    return Enqueue(stream, nullptr, {event->last});
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return Call("cudaEventCreateWithFlags", Calls::kAlways, [&] {
    *event = new CUevent_st{current_gpu, flags == cudaEventDefault, false, nullptr};
    ++TheState().events;
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Call("cudaEventDestroy", Calls::kAlways, [&] {
    delete event;
    --TheState().events;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return Call("cudaEventRecord", Calls::kAlways, [&] {
    const auto stream = StreamOf(handle);
    if (stream == nullptr || stream->gpu != event->gpu) return cudaErrorInvalidResourceHandle;
    event->captured = stream->graph != nullptr;
    return Enqueue(handle, nullptr, {}, &event->last);
  });
}
// Whoever asks often enough sees it done.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Call("cudaEventQuery", Calls::kNotWhileCaptured, [&] {
    if (event->captured) return cudaErrorStreamCaptureUnsupported;
    if (event->last == nullptr || event->last->done) return cudaSuccess;
    RunOne(*event->last->stream);
    return cudaErrorNotReady;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Call("cudaEventSynchronize", Calls::kNotWhileCaptured, [&] {
    if (event->captured) return cudaErrorStreamCaptureUnsupported;
    if (event->last != nullptr) RunUntil(*event->last);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return Call("cudaEventElapsedTime", Calls::kAlways, [&] {
    if (!begin->times || !end->times) return cudaErrorInvalidResourceHandle;
    if (!begin->last->done || !end->last->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>((end->last->seconds - begin->last->seconds) * 1e3);
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return Call("cudaThreadExchangeStreamCaptureMode", Calls::kAlways, [&] {
    std::swap(*mode, capture_mode);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return Call("cudaStreamBeginCapture", Calls::kAlways, [&] {
    const auto stream = StreamOf(handle);
    if (stream == nullptr || stream->graph != nullptr || IsLegacy(stream)) {
      return cudaErrorStreamCaptureUnsupported;
    }
    stream->graph = std::make_unique<CUgraph_st>();
    stream->mode = mode;
    stream->invalidated = false;
    stream->thread = ThisThread();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return Call("cudaStreamEndCapture", Calls::kAlways, [&] {
    const auto stream = StreamOf(handle);
    if (stream == nullptr || stream->graph == nullptr) return cudaErrorInvalidValue;
    auto captured = std::move(stream->graph);
    *graph = stream->invalidated ? nullptr : captured.release();
    return stream->invalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return Call("cudaStreamIsCapturing", Calls::kAlways, [&] {
    const auto stream = StreamOf(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (IsLegacy(stream)) {
      for (const auto& other : AllStreams()) {
        if (other->blocking && other->graph != nullptr) return cudaErrorStreamCaptureImplicit;
      }
    }
    *status = stream->graph == nullptr ? cudaStreamCaptureStatusNone
              : stream->invalidated    ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, uint64_t) {
  *made = new CUgraphExec_st{{graph->work}};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return Call("cudaGraphLaunch", Calls::kAlways, [&] {
    return Enqueue(stream, [work = graph->work] {
      for (const auto& each : work) each();
    });
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
