// Random gathers and what must come out of them, by the simplest code that is right. The native
// tests run them on the CPU's twin, gear_reverb.cuda.self_test on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "native/device/gather_plan.h"

namespace gear_reverb::device {

enum class CaseSize {
  kSmall,   // Many short rows: heads and tails.
  kMedium,  // Rows of several tiles.
  kLarge,   // Few rows of a megabyte or two.
};

struct GatherCase {
  std::string name;
  std::vector<std::byte> source;  // The plan's pieces point into it.
  GatherPlan plan;
  std::vector<std::byte> expected;  // The whole output; kPoison where no row writes.
};

// The output must hold this before the gather.
constexpr std::byte kPoison{0xa5};

// All kinds of rows, at any alignment; pieces may overlap; windows may miss their source.
GatherCase RandomGatherCase(uint64_t seed, CaseSize size);

// "" if they are the same, else where they first differ, and in which row.
std::string Difference(const GatherCase& gather_case, const std::vector<std::byte>& output);

}  // namespace gear_reverb::device
