// Checkpoints of another program, which a Checkpointer restores as well as its own.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "native/memory/arena.h"
#include "native/table/table.h"

namespace gear_reverb::checkpoint {

// Thread-safe.
class ForeignFormat {
 public:
  virtual ~ForeignFormat() = default;

  // Whether `directory` holds, or should hold, a checkpoint of this format.
  virtual bool Recognizes(const std::string& directory) const = 0;

  // Reads and checks a whole checkpoint. DATA_LOSS if it is damaged or unfinished,
  // RESOURCE_EXHAUSTED if there is no memory for it.
  virtual absl::StatusOr<std::vector<table::TableSnapshot>> Read(const std::string& directory,
                                                                 memory::Arena& arena) const = 0;

  // Whether two tables' signatures ask the same of items, though their bytes may differ.
  virtual bool SameSignature(const std::string& a, const std::string& b) const = 0;
};

}  // namespace gear_reverb::checkpoint
