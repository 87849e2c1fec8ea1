// The machine that is emulated: what GPUs it has, and what goes wrong with them. For tests.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace gear_reverb::emulation {

struct Machine {
  int gpus = 1;
  int driver = 13000;                       // Its version, as CUDA counts; 0: there is none.
  int major = 9;                            // Of the compute capability.
  size_t memory_bytes = size_t{512} << 20;  // Of all GPUs together.
  bool registers_read_only = true;
  // The host cannot reach the GPUs' memory. It takes time.
  bool hides_memory = false;
};
// What is there already stays.
void SetMachine(const Machine& machine);

// Of the calls of `name` from now on, `after` go well and then `count` fail.
void FailCalls(const std::string& name, cudaError_t error, int after = 0, int count = 1);
void FailNoCalls();
// How many have failed so since the last FailNoCalls.
int FailedCalls();

// What the GPUs hold, and what is registered: nothing, where all was given back.
struct Use {
  size_t device_bytes = 0, pinned_bytes = 0;
  size_t registrations = 0, streams = 0, events = 0;
};
Use InUse();

}  // namespace gear_reverb::emulation
