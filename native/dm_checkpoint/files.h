// The names of a dm-reverb checkpoint's files.
#pragma once

namespace gear_reverb::dm_checkpoint {

inline constexpr char kTablesFile[] = "tables.tfrecord";
inline constexpr char kChunksFile[] = "chunks.tfrecord";
inline constexpr char kItemsFile[] = "items.tfrecord";
// Empty; written when the others are complete.
inline constexpr char kDoneFile[] = "DONE";

}  // namespace gear_reverb::dm_checkpoint
