// libFuzzer on InsertStream, the method with the most to get wrong: every input is one message of a
// stream of its own. Starts from the corpus of native/server/fuzz_corpus.h by itself.
#include <algorithm>
#include <cstring>

#include "native/server/fuzz_target.h"

namespace fuzz = gear_reverb::server::fuzz;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  static const fuzz::Method insert = fuzz::AllMethods()[0];
  fuzz::Random random(seed);
  if (size > 1 && random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string message(reinterpret_cast<const char*>(data), size);
  if (size <= 1 || random() % 64 == 0) {
    const auto& call = insert.calls[random() % insert.calls.size()];
    message = call[random() % call.size()];
  }
  message = fuzz::Mutated(message, insert.schema, random);
  const size_t kept = std::min(message.size(), max_size);
  std::memcpy(data, message.data(), kept);
  return kept;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::Target target;
  const std::string message(reinterpret_cast<const char*>(data), size);
  if (target.Run(gear_reverb::rpc::method::kInsertStream, {message}).ok()) target.SampleAll();
  target.CheckNothingIsLeft();
  return 0;
}
