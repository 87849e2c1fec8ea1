#include "native/emulation/block.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "native/emulation/fiber.h"

thread_local EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace gear_reverb::emulation {
namespace {

constexpr uint32_t kLanes = 32;
constexpr std::byte kPoison{0xb5};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "An emulated kernel went wrong in block %u, thread %u: %s\n", blockIdx.x,
               threadIdx.x, what);
  std::abort();
}

struct OfLanes {
  uint32_t mask = 0, arrived = 0;
  Meeting meeting = Meeting::kSync;
  uint32_t values[kLanes], from[kLanes];
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  uint32_t bytes;
};

struct Thread {
  Fiber fiber;
  uint32_t result = 0;    // Of the meeting that it waited for.
  std::vector<Copy> out;  // Not read yet.
};

// A barrier of the block's memory for copies; it takes one arrival a phase.
struct Barrier {
  bool arrived = false;
  uint32_t parity = 0;  // Of the phase that runs.
  int64_t bytes = 0;    // Still expected.
  std::vector<Copy> copies;
};

class Block {
 public:
  void Run(uint32_t number, uint32_t threads, size_t shared_bytes,
           const std::function<void()>& work) {
    shared_.assign(shared_bytes + 128, kPoison);
    barriers_.clear();
    while (threads_.size() < threads) threads_.push_back(std::make_unique<Thread>());
    warps_.assign((threads + kLanes - 1) / kLanes, {});
    size_ = threads;
    block_arrived_ = block_votes_ = 0;
    work_ = &work;
    ready_.clear();
    blockIdx.x = number;
    for (uint32_t i = 0; i < threads; ++i) {
      threads_[i]->fiber.Start([](void* self) { (*static_cast<Block*>(self)->work_)(); }, this);
      ready_.push_back(i);
    }
    uint32_t left = threads;
    while (!ready_.empty()) {
      Next().fiber.Resume();
      if (!thread().fiber.ended()) break;
      --left;
      if (!thread().out.empty()) Fail("it ends with copies under way out of its memory");
    }
    if (left > 0) Fail("it waits for threads that never come");
  }

  uint32_t MeetLanes(Meeting meeting, uint32_t mask, uint32_t value, uint32_t from) {
    const uint32_t thread = threadIdx.x, lane = thread % kLanes, first = thread - lane;
    if ((mask >> lane & 1) == 0) Fail("a lane meets others without being of them");
    OfLanes& met = Among(warps_[thread / kLanes], mask);
    if (met.arrived == 0) met.meeting = meeting;
    if (met.meeting != meeting) Fail("lanes meet for different purposes");
    met.values[lane] = value;
    met.from[lane] = from;
    met.arrived |= uint32_t{1} << lane;
    if (met.arrived != mask) return Wait();
    met.arrived = 0;
    uint32_t ballot = 0;
    if (meeting == Meeting::kBallot) {
      for (uint32_t left = mask; left != 0; left &= left - 1) {
        if (met.values[std::countr_zero(left)] != 0) ballot |= left & -left;
      }
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const auto i = static_cast<uint32_t>(std::countr_zero(left));
      if (meeting == Meeting::kShuffle && (mask >> met.from[i] & 1) == 0) {
        Fail("a lane asks one that does not meet it");
      }
      Wake(first + i, meeting == Meeting::kShuffle ? met.values[met.from[i]] : ballot);
    }
    return Wait();
  }

  uint32_t MeetBlock(bool vote) {
    block_votes_ += vote ? 1 : 0;
    if (++block_arrived_ == size_) {
      for (uint32_t i = 0; i < size_; ++i) Wake(i, block_votes_);
      block_arrived_ = block_votes_ = 0;
    }
    return Wait();
  }

  std::byte* shared() {
    const auto address = reinterpret_cast<uintptr_t>(shared_.data());
    return shared_.data() + (128 - address % 128) % 128;
  }
  Barrier& barrier(uint64_t* at) {
    const auto found = barriers_.find(at);
    if (found == barriers_.end()) Fail("a barrier is used that was not initialized");
    return found->second;
  }
  void AddBarrier(uint64_t* at) {
    if (!barriers_.try_emplace(at).second) Fail("a barrier is initialized twice");
  }
  Thread& thread() { return *threads_[threadIdx.x]; }

 private:
  static OfLanes& Among(std::vector<OfLanes>& warp, uint32_t mask) {
    for (OfLanes& met : warp) {
      if (met.mask == mask) return met;
    }
    warp.emplace_back().mask = mask;
    return warp.back();
  }
  void Wake(uint32_t index, uint32_t result) {
    threads_[index]->result = result;
    ready_.push_back(index);
  }
  uint32_t Wait() {
    Thread& self = thread();
    if (ready_.empty()) self.fiber.Leave();  // For ever.
    const uint32_t index = threadIdx.x;
    if (Thread& next = Next(); &next != &self) self.fiber.SwitchTo(next.fiber);
    threadIdx.x = index;
    return self.result;
  }
  // The thread whose turn it is.
  Thread& Next() {
    random_ = random_ * 1664525 + 1013904223;
    uint32_t& drawn = ready_[uint64_t{random_} * ready_.size() >> 32];
    threadIdx.x = std::exchange(drawn, ready_.back());
    ready_.pop_back();
    return thread();
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<uint32_t> ready_;
  std::vector<std::vector<OfLanes>> warps_;  // A warp's meetings, by mask.
  std::vector<std::byte> shared_;
  std::map<uint64_t*, Barrier> barriers_;
  uint32_t size_ = 0, block_arrived_ = 0, block_votes_ = 0;
  const std::function<void()>* work_ = nullptr;
  uint32_t random_ = 1;
};

Block& TheBlock() {
  static thread_local Block block;
  return block;
}

void CheckAligned(const void* to, const void* from, uint32_t bytes) {
  const auto odd = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  if (odd % 16 != 0 || bytes == 0) Fail("a bulk copy is not of whole, aligned words");
}

}  // namespace

void RunGrid(uint32_t blocks, uint32_t threads, size_t shared_bytes,
             const std::function<void()>& kernel) {
  blockDim.x = threads;
  gridDim.x = blocks;
  for (uint32_t i = 0; i < blocks; ++i) TheBlock().Run(i, threads, shared_bytes, kernel);
}

std::byte* DynamicShared() { return TheBlock().shared(); }

uint32_t MeetLanes(Meeting meeting, uint32_t mask, uint32_t value, uint32_t from) {
  return TheBlock().MeetLanes(meeting, mask, value, from);
}
uint32_t MeetBlock(bool vote) { return TheBlock().MeetBlock(vote); }

void InitBarrier(uint64_t* barrier) { TheBlock().AddBarrier(barrier); }

void ExpectBytes(uint64_t* barrier, uint32_t bytes) {
  Barrier& at = TheBlock().barrier(barrier);
  if (at.arrived) Fail("a barrier's phase is begun before the last one has ended");
  at.arrived = true;
  at.bytes += bytes;
}

void CopyIn(std::byte* to, const std::byte* from, uint32_t bytes, uint64_t* barrier) {
  CheckAligned(to, from, bytes);
  std::memset(to, static_cast<int>(kPoison), bytes);
  TheBlock().barrier(barrier).copies.push_back({to, from, bytes});
}

void WaitForPhase(uint64_t* barrier, uint32_t parity) {
  Barrier& at = TheBlock().barrier(barrier);
  if (at.parity != parity) return;  // It has ended.
  for (const Copy& copy : at.copies) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    at.bytes -= copy.bytes;
  }
  at.copies.clear();
  if (!at.arrived || at.bytes != 0) Fail("a barrier's phase never ends");
  at.arrived = false;
  at.parity ^= 1;
}

void CopyOut(std::byte* to, const std::byte* from, uint32_t bytes) {
  CheckAligned(to, from, bytes);
  TheBlock().thread().out.push_back({to, from, bytes});
}

void WaitUntilRead() {
  Thread& thread = TheBlock().thread();
  for (const Copy& copy : thread.out) std::memcpy(copy.to, copy.from, copy.bytes);
  thread.out.clear();
}
void WaitUntilWritten() { WaitUntilRead(); }

}  // namespace gear_reverb::emulation
