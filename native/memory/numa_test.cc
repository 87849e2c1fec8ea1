#include "native/memory/numa.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "native/memory/arena.h"

namespace gear_reverb::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A system's files as they would be on another machine.
class FakeSystem {
 public:
  FakeSystem() {
    std::string name = ::testing::TempDir() + "numa_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void AddPci(const std::string& address, const std::string& vendor, const std::string& kind,
              int node) {
    const std::string device = "bus/pci/devices/" + address;
    Write(device + "/vendor", vendor);
    Write(device + "/class", kind);
    Write(device + "/numa_node", std::to_string(node));
  }
  Topology topology() const { return Topology(root_); }

 private:
  std::string root_;
};

TEST(TopologyTest, NodesAreRangesAndNumbers) {
  FakeSystem system;
  EXPECT_THAT(system.topology().Nodes(), IsEmpty());
  system.Write("devices/system/node/online", "0");
  EXPECT_THAT(system.topology().Nodes(), ElementsAre(0));
  system.Write("devices/system/node/online", "0-2,5");
  EXPECT_THAT(system.topology().Nodes(), ElementsAre(0, 1, 2, 5));
}

TEST(TopologyTest, AGpuIsNearItsNode) {
  FakeSystem system;
  system.Write("devices/system/node/online", "0-1");
  system.AddPci("0000:3b:00.0", "0x15b3", "0x020000", 0);  // A network card.
  system.AddPci("0000:d8:00.0", "0x10de", "0x030200", 1);
  system.AddPci("0000:e1:00.0", "0x10de", "0x030200", -1);
  const Topology topology = system.topology();
  EXPECT_EQ(topology.NodeOfPci("0000:D8:00.0"), 1);
  EXPECT_EQ(topology.NodeOfPci("0000:3b:00.0"), 0);
  EXPECT_EQ(topology.NodeOfPci("0000:e1:00.0"), kAnyNode);
  EXPECT_EQ(topology.NodeOfPci("0000:00:00.0"), kAnyNode);
  EXPECT_EQ(topology.NodeOfFirstGpu(), 1);
}

TEST(TopologyTest, OneNodeIsNoChoice) {
  FakeSystem system;
  system.Write("devices/system/node/online", "0");
  system.AddPci("0000:d8:00.0", "0x10de", "0x030200", 0);
  EXPECT_EQ(system.topology().NodeOfFirstGpu(), kAnyNode);
  EXPECT_EQ(system.topology().NodeOfPci("0000:d8:00.0"), kAnyNode);
}

TEST(TopologyTest, TheEnvironmentNamesANodeOrTheGpus) {
  FakeSystem system;
  system.Write("devices/system/node/online", "0-1");
  system.AddPci("0000:d8:00.0", "0x10de", "0x030200", 1);
  const auto node_of = [&](const char* value) {
    EXPECT_EQ(setenv("GEAR_REVERB_NUMA_NODE", value, 1), 0);
    const int node = system.topology().NodeOfEnvironment();
    EXPECT_EQ(unsetenv("GEAR_REVERB_NUMA_NODE"), 0);
    return node;
  };
  EXPECT_EQ(node_of("0"), 0);
  EXPECT_EQ(node_of("1"), 1);
  EXPECT_EQ(node_of("gpu"), 1);
  EXPECT_EQ(node_of("2"), kAnyNode);
  EXPECT_EQ(node_of("here"), kAnyNode);
  EXPECT_EQ(node_of("-1"), kAnyNode);
  EXPECT_EQ(system.topology().NodeOfEnvironment(), kAnyNode);
}

TEST(TopologyTest, ThisMachineHasANodeOrSaysNothing) {
  for (const int node : Topology().Nodes()) EXPECT_GE(node, 0);
}

// The policy of a page, or of the thread; -1 where the system does not tell.
int PolicyOf(void* page) {
  int mode = -1;
  unsigned long mask[16] = {};
  const long failed =
      syscall(SYS_get_mempolicy, &mode, mask, 1024, page, page == nullptr ? 0 : MPOL_F_ADDR);
  return failed == 0 ? mode : -1;
}

TEST(NumaTest, MemoryAndThreadsPreferTheNode) {
  if (PolicyOf(nullptr) < 0) GTEST_SKIP() << "the system has no memory policies";
  const int node = Topology().Nodes().front();
  void* const pages =
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PlaceOnNode(pages, 1 << 20, kAnyNode);
  EXPECT_EQ(PolicyOf(pages), MPOL_DEFAULT);
  PlaceOnNode(pages, 1 << 20, node);
  EXPECT_EQ(PolicyOf(pages), MPOL_PREFERRED);
  munmap(pages, 1 << 20);
  const int before = PolicyOf(nullptr);
  {
    const NodeOfThread any(kAnyNode);
    EXPECT_EQ(PolicyOf(nullptr), before);
    const NodeOfThread placed(node);
    EXPECT_EQ(PolicyOf(nullptr), MPOL_PREFERRED);
  }
  EXPECT_EQ(PolicyOf(nullptr), before);
}

TEST(NumaTest, AnArenaPlacesSegmentsToCome) {
  if (PolicyOf(nullptr) < 0) GTEST_SKIP() << "the system has no memory policies";
  const auto arena = Arena::Create({.segment_bytes = 1 << 20});
  const Block before = arena->Allocate(600 << 10).value();
  const int node = Topology().Nodes().front();
  arena->PreferNode(node);
  arena->PreferNode(node + 1);  // The first one stays.
  const Block after = arena->Allocate(600 << 10).value();
  ASSERT_NE(before.segment(), after.segment());
  EXPECT_EQ(PolicyOf(before.data()), MPOL_DEFAULT);
  EXPECT_EQ(PolicyOf(after.data()), MPOL_PREFERRED);
  after.data()[0] = std::byte{1};
}

}  // namespace
}  // namespace gear_reverb::memory
