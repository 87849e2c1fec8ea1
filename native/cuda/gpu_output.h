// What a GPU's gathers have written, and when its memory may be written again.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "native/base/mutex.h"
#include "native/cuda/resources.h"
#include "native/device/device.h"

namespace gear_reverb::cuda {

// The memory of a stream's outputs: it is used again after what its streams had to do. All of it
// with the GPU current. Thread-safe.
class OutputPool {
 public:
  explicit OutputPool(size_t kept) : pool_(kept) {}

  absl::StatusOr<DevicePool::Buffer> Take(size_t bytes);

  // From any thread, and beside captures: nothing here waits for the GPU. Memory that a stream uses
  // which is being captured waits for a later Take. So does, to be freed then, what `unknown`
  // streams use: cudaFree comes after the work of all.
  void Give(DevicePool::Buffer buffer, std::vector<cudaStream_t> streams, bool unknown);

 private:
  struct Held {
    DevicePool::Buffer buffer;
    std::vector<cudaStream_t> streams;
  };
  DevicePool pool_;
  base::Mutex mutex_;
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<DevicePool::Buffer> to_free_ ABSL_GUARDED_BY(mutex_);
};

// Memory that a framework has given back whose own stream nobody knows: it is used again after a
// point that the framework has one of our streams wait for. Thread-safe.
class Fences {
 public:
  // The rest as OutputPool::Give has it.
  void Add(std::shared_ptr<OutputPool> pool, DevicePool::Buffer buffer,
           std::vector<cudaStream_t> streams, bool unknown);
  bool wanted();
  // What has been added until now goes back to its pools, for use after what `wait` has the stream
  // wait for. What `wait` throws is thrown, and nothing is lost.
  absl::Status Pass(absl::FunctionRef<void(device::Stream)> wait);

 private:
  struct Waiting {
    std::shared_ptr<OutputPool> pool;
    DevicePool::Buffer buffer;
    std::vector<cudaStream_t> streams;
    bool unknown;
  };
  void PutBack(std::vector<Waiting> waiting);
  absl::StatusOr<cudaStream_t> TheStream();

  base::Mutex mutex_;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  Stream stream_ ABSL_GUARDED_BY(mutex_);  // Made when it is first needed.
};

// `fences` are those of the GPU. `gathered`: an event after the work that writes the memory.
std::shared_ptr<device::Output> MakeGpuOutput(int gpu, std::shared_ptr<const void> keep,
                                              std::shared_ptr<Fences> fences,
                                              std::shared_ptr<OutputPool> pool,
                                              DevicePool::Buffer buffer,
                                              std::shared_ptr<const Event> gathered);

}  // namespace gear_reverb::cuda
