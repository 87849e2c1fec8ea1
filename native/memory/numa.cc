#include "native/memory/numa.h"

#include <dirent.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "native/base/environment.h"

namespace gear_reverb::memory {
namespace {

constexpr int kMaxNodes = 1024;
constexpr unsigned long kBitsOfWord = 8 * sizeof(unsigned long);
constexpr char kNvidia[] = "0x10de";
constexpr char kDisplay[] = "0x03";  // Of PCI classes.

std::vector<std::string> Entries(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const stream = opendir(directory.c_str());
  if (stream == nullptr) return names;
  while (const dirent* const entry = readdir(stream)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string Topology::Read(const std::string& path) const {
  std::ifstream file(absl::StrCat(sysfs_, "/", path));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  absl::StripAsciiWhitespace(&text);
  return text;
}

std::vector<int> Topology::Nodes() const {
  std::vector<int> nodes;
  // "0-1,3"
  for (const absl::string_view range :
       absl::StrSplit(Read("devices/system/node/online"), ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first, last;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second, &last)) last = first;
    for (int node = first; node <= last && node < kMaxNodes; ++node) nodes.push_back(node);
  }
  return nodes;
}

int Topology::NodeOfPci(absl::string_view address) const {
  int node;
  if (Nodes().size() < 2) return kAnyNode;
  const std::string path =
      absl::StrCat("bus/pci/devices/", absl::AsciiStrToLower(address), "/numa_node");
  return absl::SimpleAtoi(Read(path), &node) && node >= 0 ? node : kAnyNode;
}

int Topology::NodeOfFirstGpu() const {
  for (const std::string& address : Entries(absl::StrCat(sysfs_, "/bus/pci/devices"))) {
    const std::string device = absl::StrCat("bus/pci/devices/", address);
    if (Read(absl::StrCat(device, "/vendor")) == kNvidia &&
        absl::StartsWith(Read(absl::StrCat(device, "/class")), kDisplay)) {
      return NodeOfPci(address);
    }
  }
  return kAnyNode;
}

int Topology::NodeOfEnvironment() const {
  const char* const text = std::getenv("GEAR_REVERB_NUMA_NODE");
  if (text == nullptr) return kAnyNode;
  if (absl::string_view(text) == "gpu") return NodeOfFirstGpu();
  const std::vector<int> nodes = Nodes();
  if (nodes.size() < 2) return kAnyNode;
  int node;
  if (absl::SimpleAtoi(text, &node) && std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
    return node;
  }
  base::IgnoreSetting("GEAR_REVERB_NUMA_NODE", text, "a memory node of this machine, or 'gpu'");
  return kAnyNode;
}

void PlaceOnNode(void* base, size_t bytes, int node) {
  if (node < 0 || node >= kMaxNodes) return;
  unsigned long mask[kMaxNodes / kBitsOfWord] = {};
  mask[node / kBitsOfWord] = 1ul << (node % kBitsOfWord);
  (void)syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask, kMaxNodes, 0);
}

NodeOfThread::NodeOfThread(int node) {
  static_assert(kMaskWords * kBitsOfWord == kMaxNodes);
  if (node < 0 || node >= kMaxNodes) return;
  if (syscall(SYS_get_mempolicy, &mode_, mask_, kMaxNodes, nullptr, 0) != 0) return;
  unsigned long mask[kMaskWords] = {};
  mask[node / kBitsOfWord] = 1ul << (node % kBitsOfWord);
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, kMaxNodes) == 0;
}

NodeOfThread::~NodeOfThread() {
  if (changed_) (void)syscall(SYS_set_mempolicy, mode_, mask_, kMaxNodes);
}

}  // namespace gear_reverb::memory
