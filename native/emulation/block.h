// A block of threads as a GPU runs them, on one thread of the CPU: each has a stack of its own, and
// they wait for one another where the GPU's would. Which one goes on is drawn, so that code that
// waits too little is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

// Of the thread that runs, by CUDA's names.
struct EmulatedIndex {
  uint32_t x, y, z;
};
extern thread_local EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gear_reverb::emulation {

// Runs `kernel` once for every thread of every block, one block after another.
void RunGrid(uint32_t blocks, uint32_t threads, size_t shared_bytes,
             const std::function<void()>& kernel);

// Memory of the block, of the size its launch asked for; poisoned at its start.
std::byte* DynamicShared();

// ---------------------------------------------------------------------- meetings of threads

enum class Meeting { kShuffle, kBallot, kSync };
// Waits for the lanes of `mask`, this one among them. A shuffle gives what lane `from` gave; a
// ballot one bit for each lane that gave anything but 0.
uint32_t MeetLanes(Meeting meeting, uint32_t mask, uint32_t value, uint32_t from);
// Waits for all threads of the block; how many of them gave true.
uint32_t MeetBlock(bool vote);

// ------------------------------------------------------------------------------ bulk copies

// Copies between memory and the block's, which end no sooner than they must: those into the block
// when their barrier is waited for, those out of it when the group is.
void InitBarrier(uint64_t* barrier);
void ExpectBytes(uint64_t* barrier, uint32_t bytes);
void CopyIn(std::byte* to, const std::byte* from, uint32_t bytes, uint64_t* barrier);
void WaitForPhase(uint64_t* barrier, uint32_t parity);
void CopyOut(std::byte* to, const std::byte* from, uint32_t bytes);
void WaitUntilRead();
void WaitUntilWritten();

}  // namespace gear_reverb::emulation
