// libFuzzer on the other messages: the first byte chooses a method of the server, or, above those,
// all decoders of what a client reads.
#include "native/server/fuzz_target.h"

namespace fuzz = gear_reverb::server::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<fuzz::Method> methods = fuzz::AllMethods();
  static fuzz::Target target;
  if (size == 0) return 0;
  const std::string message(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] < methods.size()) {
    (void)target.Run(methods[data[0]].path, {message});
    target.CheckNothingIsLeft();
  } else {
    fuzz::DecodeAll(message);
  }
  return 0;
}
