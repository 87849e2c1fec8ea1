// How what talks to a server, or is one, ends.
#pragma once

#include <optional>

#include "native/bindings/errors.h"
#include "native/client/fork_guard.h"

namespace gear_reverb::bindings {

// Deletes without the GIL, from threads with it and without: threads have to be waited for, and the
// server may have to be told. In a forked child, where those threads are not and the connections
// are the parent's, nothing is deleted.
struct PeerDelete {
  template <typename T>
  void operator()(T* peer) const {
    if (!client::CheckNotForked().ok()) return;
    std::optional<ReleaseGil> release;
    if (PyGILState_Check() != 0) release.emplace();
    delete peer;
  }
};

}  // namespace gear_reverb::bindings
