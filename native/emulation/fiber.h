// Stacks that take turns on one thread.
#pragma once

#include <cstddef>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace gear_reverb::emulation {

// A function on a stack of its own. One of a thread's fibers runs at a time, while the thread's own
// stack waits.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Begins a new function, which waits for its first turn. The last one must have ended.
  void Start(void (*function)(void*), void* argument);
  // Gives this fiber its turn, and comes back when the one that has the turn then ends or leaves.
  void Resume();
  // Of this fiber, which has the turn: gives it to `other`, until another fiber gives it back.
  void SwitchTo(Fiber& other);
  // Of this fiber: gives the turn to the thread's own stack.
  void Leave();
  bool ended() const { return function_ == nullptr; }

 private:
  // Where a side goes on, and what AddressSanitizer must know of it.
  struct Side {
#if defined(__x86_64__)
    void* stack_pointer = nullptr;
#else
    ucontext_t context;
#endif
    const void* stack = nullptr;
    size_t stack_bytes = 0;
    void* kept_by_sanitizer = nullptr;
  };

  static void Enter();
  static void Switch(Side* from, Side* to);
  static void Arrived(Side* side, Side* came_from);

  static thread_local Fiber* running_;
  static thread_local Side thread_;
  static thread_local bool left_thread_;  // By the last switch.
  Side own_;
  std::unique_ptr<char[]> memory_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace gear_reverb::emulation
