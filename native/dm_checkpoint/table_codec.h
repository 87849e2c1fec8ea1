// A table in a checkpoint of dm-reverb (PriorityTableCheckpoint): all but its items.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/rpc/message_writer.h"
#include "native/table/table.h"

namespace gear_reverb::dm_checkpoint {

rpc::MessageWriter EncodeTable(const table::TableSnapshot& snapshot);

// INVALID_ARGUMENT for a malformed message, one without a name, or one whose items lie within it,
// as very old versions had them. The random seed, which such checkpoints do not have, is new.
absl::StatusOr<table::TableSnapshot> DecodeTable(absl::string_view message);

}  // namespace gear_reverb::dm_checkpoint
