#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "native/device/device_heap.h"
#include "native/device/tier_memory.h"

namespace gear_reverb::device {
namespace {

class CpuTierMemory final : public TierMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(uint64_t bytes) override {
    void* const data = std::aligned_alloc(DeviceHeap::kAlignment, bytes);
    if (data != nullptr) return static_cast<std::byte*>(data);
    return absl::ResourceExhaustedError(absl::StrCat("There are no ", bytes, " bytes of memory."));
  }
  void Free(std::byte* data) override { std::free(data); }
  absl::Status Copy(absl::Span<const kernels::Copy> copies) override {
    kernels::Gather(copies);
    return absl::OkStatus();
  }
  uint64_t default_limit_bytes() const override {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
  }
};

}  // namespace

std::unique_ptr<TierMemory> NewCpuTierMemory() { return std::make_unique<CpuTierMemory>(); }

}  // namespace gear_reverb::device
