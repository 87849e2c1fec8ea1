// The kernels of selection under the tests of their twin. Skipped, with the reason, without a GPU.
#include "native/cuda/select_backend.h"
#include "native/device/selection_conformance.h"
#include "native/device/table_mirror_conformance.h"

namespace gear_reverb::device::testing {
namespace {

NamedBackend Gpu() {
  return {"Cuda", [] { return cuda::MakeSelectBackend(0); }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gpu, SelectionTest, ::testing::ValuesIn(Cases(Gpu())), NameOf);
INSTANTIATE_TEST_SUITE_P(Gpu, WeightedSelectionTest, ::testing::ValuesIn(WeightedCases(Gpu())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Gpu, TableMirrorTest, ::testing::ValuesIn(Cases(Gpu())), NameOf);

}  // namespace gear_reverb::device::testing
