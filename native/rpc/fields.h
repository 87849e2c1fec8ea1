// Field numbers of Reverb's messages (docs/formats/wire.md) and of our own additions.
#pragma once

#include <cstdint>

namespace gear_reverb::rpc::field {

namespace insert_request {
inline constexpr uint32_t kChunks = 1, kItems = 2, kKeepChunkKeys = 3;
}
namespace insert_response {
inline constexpr uint32_t kKeys = 1;
}
namespace mutate_request {
inline constexpr uint32_t kTable = 1, kUpdates = 2, kDeleteKeys = 3;
}
namespace key_with_priority {
inline constexpr uint32_t kKey = 1, kPriority = 2;
}
namespace reset_request {
inline constexpr uint32_t kTable = 1;
}
namespace sample_request {
inline constexpr uint32_t kTable = 1, kNumSamples = 2, kTimeout = 3;
}
namespace timeout {
inline constexpr uint32_t kMilliseconds = 1;
}
namespace sample_response {
inline constexpr uint32_t kEntries = 1;
}
namespace sample_entry {
inline constexpr uint32_t kInfo = 1, kData = 2, kEndOfSequence = 3;
}
namespace sample_info {
inline constexpr uint32_t kItem = 1, kProbability = 2, kTableSize = 3, kRateLimited = 4;
}
namespace server_info_response {
inline constexpr uint32_t kTablesStateId = 1, kTables = 2;
}
namespace uint128 {
inline constexpr uint32_t kHigh = 1, kLow = 2;
}
namespace checkpoint_response {
inline constexpr uint32_t kPath = 1;
}
namespace initialize_response {
inline constexpr uint32_t kAddress = 1;
}

namespace chunk_data {
inline constexpr uint32_t kChunkKey = 1, kSequenceRange = 2, kDeprecatedTensors = 3,
                          kDeltaEncoded = 4, kData = 5, kTensorsLen = 6, kUncompressedSize = 7;
}
namespace sequence_range {
inline constexpr uint32_t kEpisodeId = 1, kStart = 2, kEnd = 3, kSparse = 4;
}
namespace chunk_tensors {
inline constexpr uint32_t kTensors = 1;
}
namespace tensor_proto {
inline constexpr uint32_t kDtype = 1, kShape = 2, kContent = 4, kStringValues = 8;
}
namespace tensor_shape {
inline constexpr uint32_t kAxes = 2, kUnknownRank = 3;
}
namespace axis {
inline constexpr uint32_t kSize = 1;
}

namespace item {
inline constexpr uint32_t kKey = 1, kTable = 2, kPriority = 5, kTimesSampled = 6, kInsertedAt = 7,
                          kTrajectory = 8;
}
namespace timestamp {
inline constexpr uint32_t kSeconds = 1, kNanos = 2;
}
namespace trajectory {
inline constexpr uint32_t kColumns = 1;
}
namespace column {
inline constexpr uint32_t kSlices = 1, kSqueeze = 2;
}
namespace slice {
inline constexpr uint32_t kChunkKey = 1, kOffset = 2, kLength = 3, kIndex = 4;
}

namespace table_info {
inline constexpr uint32_t kSampler = 1, kRemover = 2, kMaxSize = 3, kMaxTimesSampled = 4,
                          kRateLimiter = 5, kSignature = 6, kCurrentSize = 7, kName = 8,
                          kNumEpisodes = 9, kNumDeletedEpisodes = 10, kNumUniqueSamples = 11,
                          kWorkerTime = 12;
// Ours; Reverb's clients skip them.
inline constexpr uint32_t kBytes = 1001, kWaitingInserts = 1002, kWaitingSamples = 1003,
                          kBlockedInsert = 1004, kBlockedSample = 1005, kNumUnusedSamples = 1006;
}  // namespace table_info
namespace key_distribution {
inline constexpr uint32_t kFifo = 1, kUniform = 2, kPrioritized = 3, kHeap = 4, kLifo = 6,
                          kIsDeterministic = 7;
}
namespace prioritized {
inline constexpr uint32_t kExponent = 1;
}
namespace heap {
inline constexpr uint32_t kMinHeap = 1;
}
namespace rate_limiter_info {
inline constexpr uint32_t kSamplesPerInsert = 1, kMinDiff = 2, kMaxDiff = 3, kMinSizeToSample = 4,
                          kInsertStats = 5, kSampleStats = 6;
}
namespace call_stats {
inline constexpr uint32_t kCompleted = 2;
}
namespace worker_time {
inline constexpr uint32_t kRunning = 1, kSampling = 2, kInserting = 3;
}

// Our own service (gear_reverb.v1.Gear).
namespace hello_response {
inline constexpr uint32_t kToken = 1, kVersion = 2, kSocketName = 3;
}
namespace report_unused_request {
inline constexpr uint32_t kTable = 1, kCount = 2;
}

}  // namespace gear_reverb::rpc::field
