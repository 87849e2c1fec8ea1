#include "native/client/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace gear_reverb::client {
namespace {

std::atomic<bool> in_use{false};
std::atomic<bool> forked{false};

}  // namespace

void NoteGrpcUse() {
  if (in_use.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
}

absl::Status CheckNotForked() {
  if (!forked.load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "This process was forked from one that already used gear_reverb, and gRPC does not survive a "
      "fork. Start processes with the 'spawn' method: multiprocessing.get_context('spawn').");
}

}  // namespace gear_reverb::client
