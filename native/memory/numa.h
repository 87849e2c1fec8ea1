// Memory near a GPU, on machines whose memory is in several nodes. All of this is advice: where the
// system does not take it, or there is one node, memory is as without it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gear_reverb::memory {

inline constexpr int kAnyNode = -1;

// What the system tells of its nodes. Thread-safe; reads files at every call.
class Topology {
 public:
  explicit Topology(std::string sysfs = "/sys") : sysfs_(std::move(sysfs)) {}

  // Those that are online; none where the system does not tell.
  std::vector<int> Nodes() const;
  // Of the device at a PCI address ("0000:3b:00.0", in either case). kAnyNode where there is one
  // node, or no such device, or it is near none.
  int NodeOfPci(absl::string_view address) const;
  // Of NVIDIA's GPU with the first PCI address; else as NodeOfPci.
  int NodeOfFirstGpu() const;
  // What GEAR_REVERB_NUMA_NODE says: a node's number, or "gpu" for NodeOfFirstGpu. kAnyNode where
  // it is not set, there is one node, or no such node.
  int NodeOfEnvironment() const;

 private:
  std::string Read(const std::string& path) const;

  const std::string sysfs_;
};

// Has memory that nobody has touched yet come from `node` while that has some; `base` is a page's
// start. kAnyNode changes nothing.
void PlaceOnNode(void* base, size_t bytes, int node);

// The same for all memory that this thread has the system allocate while the object lives.
class NodeOfThread {
 public:
  explicit NodeOfThread(int node);
  ~NodeOfThread();
  NodeOfThread(const NodeOfThread&) = delete;
  NodeOfThread& operator=(const NodeOfThread&) = delete;

 private:
  static constexpr size_t kMaskWords = 16;
  bool changed_ = false;
  int mode_ = 0;
  unsigned long mask_[kMaskWords] = {};
};

}  // namespace gear_reverb::memory
