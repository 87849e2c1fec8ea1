"""Tables as a checkpoint or a server's configuration tells them: Reverb's checkpoint.proto.

Field numbers are Reverb's; package and file name are ours, so that both can be loaded.
"""

from gear_reverb.cc import _proto, schema_pb2
from gear_reverb.cc import struct_pb2 as _struct_pb2

_proto.define(
    globals(),
    name="gear_reverb/cc/checkpointing/checkpoint.proto",
    package="gear_reverb.checkpoint",
    imports=[schema_pb2.DESCRIPTOR.name, _struct_pb2.DESCRIPTOR.name],
    source="""
message PriorityTableCheckpoint {
  string table_name = 1;
  int64 max_size = 6;
  int32 max_times_sampled = 7;
  repeated gear_reverb.schema.PrioritizedItem deprecated_items = 2;
  RateLimiterCheckpoint rate_limiter = 3;
  gear_reverb.schema.KeyDistributionOptions sampler = 4;
  gear_reverb.schema.KeyDistributionOptions remover = 5;
  int64 num_deleted_episodes = 8;
  gear_reverb.structure.StructuredValue signature = 9;
  int64 num_unique_samples = 10;
}

message RateLimiterCheckpoint {
  double samples_per_insert = 2;
  double min_diff = 3;
  double max_diff = 4;
  int64 min_size_to_sample = 5;
  int64 sample_count = 6;
  int64 insert_count = 7;
  int64 delete_count = 8;
}
""",
)
