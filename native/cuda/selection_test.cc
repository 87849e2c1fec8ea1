// The kernels of selection, and resident tables, under the tests of their twin. Skipped, with the
// reason, without a GPU.
#include "native/base/status.h"
#include "native/cuda/gpu.h"
#include "native/cuda/select_backend.h"
#include "native/device/resident_table_conformance.h"
#include "native/device/selection_conformance.h"
#include "native/device/table_mirror_conformance.h"

namespace gear_reverb::device::testing {
namespace {

NamedBackend Gpu() {
  return {"Cuda", [] { return cuda::MakeSelectBackend(0); }};
}

absl::StatusOr<std::shared_ptr<DrawBackend>> GpuDraws() {
  GR_ASSIGN_OR_RETURN(const auto gpu, cuda::OpenGpu(0));
  GR_ASSIGN_OR_RETURN(auto backend, gpu->NewDrawBackend(nullptr));
  return std::shared_ptr<DrawBackend>(std::move(backend));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gpu, ResidentTableTest,
                         ::testing::Values(NamedDrawBackend{"Cuda", GpuDraws}),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Gpu, SelectionTest, ::testing::ValuesIn(Cases(Gpu())), NameOf);
INSTANTIATE_TEST_SUITE_P(Gpu, WeightedSelectionTest, ::testing::ValuesIn(WeightedCases(Gpu())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Gpu, TableMirrorTest, ::testing::ValuesIn(Cases(Gpu())), NameOf);

}  // namespace gear_reverb::device::testing
