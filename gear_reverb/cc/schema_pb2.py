"""Chunks, items and tables on the wire: Reverb's schema.proto, under our package and file name."""

from google.protobuf import timestamp_pb2 as _timestamp_pb2

from gear_reverb.cc import _proto
from gear_reverb.cc import struct_pb2 as _struct_pb2

_proto.define(
    globals(),
    name="gear_reverb/cc/schema.proto",
    package="gear_reverb.schema",
    imports=[_timestamp_pb2.DESCRIPTOR.name, _struct_pb2.DESCRIPTOR.name],
    source="""
message ChunkData {
  message Data { repeated gear_reverb.structure.TensorProto tensors = 1; }
  uint64 chunk_key = 1;
  SequenceRange sequence_range = 2;
  repeated gear_reverb.structure.TensorProto deprecated_data = 3;
  bool delta_encoded = 4;
  Data data = 5;
  int32 data_tensors_len = 6;
  int64 data_uncompressed_size = 7;
}

message SliceRange { int32 offset = 1; int32 length = 2; }

message SequenceRange {
  uint64 episode_id = 1;
  int32 start = 2;
  int32 end = 3;
  bool sparse = 4;
}

message FlatTrajectory {
  message ChunkSlice {
    uint64 chunk_key = 1;
    int32 offset = 2;
    int32 length = 3;
    int32 index = 4;
  }
  message Column { repeated ChunkSlice chunk_slices = 1; bool squeeze = 2; }
  repeated Column columns = 1;
}

message PrioritizedItem {
  uint64 key = 1;
  string table = 2;
  repeated uint64 deprecated_chunk_keys = 3;
  SliceRange deprecated_sequence_range = 4;
  double priority = 5;
  int32 times_sampled = 6;
  google.protobuf.Timestamp inserted_at = 7;
  FlatTrajectory flat_trajectory = 8;
}

message KeyWithPriority { uint64 key = 1; double priority = 2; }

message SampleInfo {
  PrioritizedItem item = 1;
  double probability = 2;
  int64 table_size = 3;
  bool rate_limited = 4;
}

message KeyDistributionOptions {
  message Prioritized { double priority_exponent = 1; }
  message Heap { bool min_heap = 1; }
  oneof distribution {
    bool fifo = 1;
    bool uniform = 2;
    Prioritized prioritized = 3;
    Heap heap = 4;
    bool lifo = 6;
  }
  bool is_deterministic = 7;
}

message RateLimiterCallStats { int64 completed = 2; }

message RateLimiterInfo {
  double samples_per_insert = 1;
  double min_diff = 2;
  double max_diff = 3;
  int64 min_size_to_sample = 4;
  RateLimiterCallStats insert_stats = 5;
  RateLimiterCallStats sample_stats = 6;
}

message TableWorkerTime {
  int64 running_ms = 1;
  int64 sampling_ms = 2;
  int64 inserting_ms = 3;
  int64 sleeping_ms = 4;
  int64 waiting_for_sampling_ms = 5;
  int64 waiting_for_inserts_ms = 6;
}

message TableInfo {
  KeyDistributionOptions sampler_options = 1;
  KeyDistributionOptions remover_options = 2;
  int64 max_size = 3;
  int32 max_times_sampled = 4;
  RateLimiterInfo rate_limiter_info = 5;
  gear_reverb.structure.StructuredValue signature = 6;
  int64 current_size = 7;
  string name = 8;
  int64 num_episodes = 9;
  int64 num_deleted_episodes = 10;
  int64 num_unique_samples = 11;
  TableWorkerTime table_worker_time = 12;
  int64 num_bytes = 1001;
  int64 waiting_inserts = 1002;
  int64 waiting_samples = 1003;
  string blocked_insert = 1004;
  string blocked_sample = 1005;
  int64 num_unused_samples = 1006;
}

message Uint128 { uint64 high = 1; uint64 low = 2; }
message Timeout { int64 milliseconds = 1; }
""",
)
