#include "native/emulation/fiber.h"

#include <cstdint>
#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves what a function keeps for its caller, and goes on where `to` was saved. ucontext would ask
// the system for the signal mask at every turn, which takes ten times as long.
extern "C" void gear_reverb_switch_stack(void** from, void* to);
asm(R"(
.text
.type gear_reverb_switch_stack, @function
gear_reverb_switch_stack:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gear_reverb_switch_stack, . - gear_reverb_switch_stack
)");
#endif

namespace gear_reverb::emulation {
namespace {
constexpr size_t kStackBytes = size_t{64} << 10;
}  // namespace

thread_local Fiber* Fiber::running_ = nullptr;
thread_local Fiber::Side Fiber::thread_;
thread_local bool Fiber::left_thread_ = false;

Fiber::Fiber() : memory_(new char[kStackBytes]) {
  own_.stack = memory_.get();
  own_.stack_bytes = kStackBytes;
}

Fiber::~Fiber() = default;

void Fiber::Start(void (*function)(void*), void* argument) {
  if (!ended()) std::abort();
  function_ = function;
  argument_ = argument;
#if defined(__x86_64__)
  const auto top = (reinterpret_cast<uintptr_t>(memory_.get()) + kStackBytes) / 16 * 16;
  auto* const words = reinterpret_cast<uintptr_t*>(top);
  words[-2] = reinterpret_cast<uintptr_t>(&Fiber::Enter);  // Where the first switch returns to.
  for (int i = 3; i <= 8; ++i) words[-i] = 0;              // The registers.
  own_.stack_pointer = words - 8;
#else
  getcontext(&own_.context);
  own_.context.uc_stack.ss_sp = memory_.get();
  own_.context.uc_stack.ss_size = kStackBytes;
  makecontext(&own_.context, &Fiber::Enter, 0);
#endif
}

void Fiber::Resume() {
  running_ = this;
  left_thread_ = true;
  Switch(&thread_, &own_);
}
void Fiber::SwitchTo(Fiber& other) {
  running_ = &other;
  left_thread_ = false;
  Switch(&own_, &other.own_);
}
void Fiber::Leave() { Switch(&own_, &thread_); }

void Fiber::Enter() {
  Fiber& self = *running_;
  Arrived(nullptr, left_thread_ ? &thread_ : nullptr);
  self.function_(self.argument_);
  self.function_ = nullptr;
  Switch(nullptr, &thread_);
}

// From null there is no way back.
void Fiber::Switch(Side* from, Side* to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(from == nullptr ? nullptr : &from->kept_by_sanitizer, to->stack,
                                 to->stack_bytes);
#endif
#if defined(__x86_64__)
  static thread_local void* nowhere;  // On no stack, which the sanitizer may have dropped.
  gear_reverb_switch_stack(from == nullptr ? &nowhere : &from->stack_pointer, to->stack_pointer);
#else
  if (from == nullptr) setcontext(&to->context);
  swapcontext(&from->context, &to->context);
#endif
  Arrived(from, nullptr);
}

void Fiber::Arrived([[maybe_unused]] Side* side, [[maybe_unused]] Side* came_from) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(side == nullptr ? nullptr : side->kept_by_sanitizer,
                                  came_from == nullptr ? nullptr : &came_from->stack,
                                  came_from == nullptr ? nullptr : &came_from->stack_bytes);
#endif
}

}  // namespace gear_reverb::emulation
