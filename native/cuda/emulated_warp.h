// A warp on the CPU: 32 lanes that take turns, each on a stack of its own, and wait for one another
// where the GPU's lanes would. For tests of kernels; single-threaded.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "native/device/casts.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define __device__

namespace gear_reverb::cuda {

using std::max;
using std::min;

struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct Index {
  uint32_t x;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;

class EmulatedWarp {
 public:
  // Runs `lane` 32 times side by side, with threadIdx.x 0 to 31 in a block of one warp.
  static void Run(const std::function<void()>& lane) {
    EmulatedWarp warp(lane);
    current_ = &warp;
    for (bool any = true; any;) {
      any = false;
      for (uint32_t i = 0; i < 32; ++i) {
        if (warp.done_[i]) continue;
        any = true;
        warp.lane_ = i;
        threadIdx.x = i;
        warp.Switch(&warp.scheduler_, &warp.lanes_[i]);
      }
    }
  }

  // Waits for the lanes of `mask`, this one among them; each then has what all of them gave.
  static std::array<uint32_t, 32> Meet(uint32_t mask, uint32_t value) {
    EmulatedWarp& warp = *current_;
    const uint32_t lane = warp.lane_, bit = 1u << lane;
    Meeting& meeting = warp.meetings_[mask];
    while ((meeting.left & bit) != 0) warp.Yield(lane);  // The others still leave the last one.
    meeting.values[lane] = value;
    meeting.arrived |= bit;
    while (meeting.arrived != mask) warp.Yield(lane);
    const std::array<uint32_t, 32> values = meeting.values;
    meeting.left |= bit;
    if (meeting.left == mask) meeting.arrived = meeting.left = 0;
    return values;
  }
  static uint32_t lane() { return current_->lane_; }

 private:
  struct Meeting {
    uint32_t arrived = 0, left = 0;
    std::array<uint32_t, 32> values{};
  };
  static constexpr size_t kStackBytes = 128 << 10;

  explicit EmulatedWarp(const std::function<void()>& lane) : work_(lane) {
    for (uint32_t i = 0; i < 32; ++i) {
      stacks_.push_back(std::make_unique<char[]>(kStackBytes));
      ucontext_t& context = lanes_[i].context;
      getcontext(&context);
      context.uc_stack.ss_sp = stacks_[i].get();
      context.uc_stack.ss_size = kStackBytes;
      lanes_[i].stack = stacks_[i].get();
      lanes_[i].stack_bytes = kStackBytes;
      makecontext(&context, &EmulatedWarp::Start, 0);
    }
  }
  static void Start() {
    EmulatedWarp& warp = *current_;
    const uint32_t lane = warp.lane_;
    warp.Entered(nullptr, &warp.scheduler_);
    warp.work_();
    warp.done_[lane] = true;
    warp.Switch(nullptr, &warp.scheduler_);
  }
  void Yield(uint32_t lane) {
    Switch(&lanes_[lane], &scheduler_);
    threadIdx.x = lane;
  }

  // A stack that can be left and come back to. AddressSanitizer is told of both.
  struct Side {
    ucontext_t context;
    const void* stack = nullptr;
    size_t stack_bytes = 0;
    void* kept_by_sanitizer = nullptr;
  };
  // From null there is no way back.
  void Switch(Side* from, Side* to) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(from == nullptr ? nullptr : &from->kept_by_sanitizer, to->stack,
                                   to->stack_bytes);
#endif
    if (from == nullptr) setcontext(&to->context);
    swapcontext(&from->context, &to->context);
    Entered(from, nullptr);
  }
  void Entered([[maybe_unused]] Side* side, [[maybe_unused]] Side* came_from) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(side == nullptr ? nullptr : side->kept_by_sanitizer,
                                    came_from == nullptr ? nullptr : &came_from->stack,
                                    came_from == nullptr ? nullptr : &came_from->stack_bytes);
#endif
  }

  static inline EmulatedWarp* current_ = nullptr;
  const std::function<void()> work_;
  Side scheduler_, lanes_[32];
  std::vector<std::unique_ptr<char[]>> stacks_;
  bool done_[32] = {};
  uint32_t lane_ = 0;                     // The one that runs.
  std::map<uint32_t, Meeting> meetings_;  // By mask.
};

inline uint32_t __shfl_sync(uint32_t mask, uint32_t value, uint32_t from, uint32_t width) {
  const uint32_t first = EmulatedWarp::lane() / width * width;
  return EmulatedWarp::Meet(mask, value)[first + from % width];
}
inline uint32_t __ballot_sync(uint32_t mask, bool vote) {
  const std::array<uint32_t, 32> votes = EmulatedWarp::Meet(mask, vote ? 1 : 0);
  uint32_t ballot = 0;
  for (uint32_t i = 0; i < 32; ++i) ballot |= (mask >> i & votes[i]) << i;
  return ballot;
}
inline void __syncwarp() { EmulatedWarp::Meet(~0u, 0); }
inline uint32_t __popc(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }
inline uint32_t __ffs(uint32_t bits) { return static_cast<uint32_t>(__builtin_ffs(bits)); }
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift & 31));
}
inline uint4 __ldcs(const uint4* word) { return *word; }
inline uint4 __ldca(const uint4* word) { return *word; }
inline float __uint_as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline float __uint2float_rn(uint32_t value) { return static_cast<float>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }

inline uint32_t PackBfloat16(uint32_t low, uint32_t high) {
  return device::ToBfloat16(__uint_as_float(low)) |
         static_cast<uint32_t>(device::ToBfloat16(__uint_as_float(high))) << 16;
}
inline uint32_t PackFloat16(float low, float high) {
  return device::ToFloat16(low) | static_cast<uint32_t>(device::ToFloat16(high)) << 16;
}

}  // namespace gear_reverb::cuda
