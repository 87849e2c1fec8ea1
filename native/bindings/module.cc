// gear_reverb._native. Its interface is described in gear_reverb/_native.pyi.
#include "native/bindings/arrays.h"
#include "native/bindings/definitions.h"
#include "native/bindings/device_array.h"
#include "native/bindings/errors.h"

PYBIND11_MODULE(_native, module) {
  using namespace gear_reverb::bindings;
  module.doc() = "The native core of gear_reverb.";
  module.attr("__version__") = GEAR_REVERB_VERSION;
  DefineErrors(module);
  DefineArrays(module);
  DefineTables(module);
  DefineServer(module);
  DefineWriters(module);
  DefineStructuredWriter(module);
  DefineSampler(module);
  DefineDeviceArray(module);
  DefineHostCopies(module);
  DefineBatchSampler(module);
  DefineFixedBatchSampler(module);
  DefineClient(module);
  DefineBatchInsert(module);
  DefineBatchAppend(module);
  DefineBlocks(module);
  DefineCuda(module);
  DefineCudaSelect(module);
}
