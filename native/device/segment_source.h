// Memory in segments that a device may register: a server's arena, or another process's that is
// mapped here.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "native/memory/arena.h"

namespace gear_reverb::device {

// Thread-safe.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Equal for sources of the same memory.
  virtual const void* memory() const = 0;
  // From now on no page of a segment goes back to the system: what a device reads there must stay
  // where it is. May wait for another process, for a bounded time.
  virtual absl::Status Keep() = 0;
  // Where segments to come should lie; see memory/numa.h.
  virtual void PreferNode(int) {}
  // Those that there are now.
  virtual std::vector<memory::SegmentView> segments() const = 0;
  // Whether this process may only read them.
  virtual bool read_only() const = 0;
};

class ArenaSource final : public SegmentSource {
 public:
  explicit ArenaSource(std::shared_ptr<memory::Arena> arena) : arena_(std::move(arena)) {}
  const void* memory() const override { return arena_.get(); }
  absl::Status Keep() override {
    arena_->KeepMemory();
    return absl::OkStatus();
  }
  std::vector<memory::SegmentView> segments() const override { return arena_->segments(); }
  void PreferNode(int node) override { arena_->PreferNode(node); }
  bool read_only() const override { return false; }

 private:
  const std::shared_ptr<memory::Arena> arena_;
};

}  // namespace gear_reverb::device
