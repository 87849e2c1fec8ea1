"""Configuration of the server program: Reverb's reverb_config.proto.

Field numbers are Reverb's; package and file name are ours, so that both can be loaded.
"""

from gear_reverb.cc import _proto
from gear_reverb.cc.checkpointing import checkpoint_pb2 as _checkpoint_pb2

_proto.define(
    globals(),
    name="gear_reverb/server_executable/reverb_config.proto",
    package="gear_reverb.config",
    imports=[_checkpoint_pb2.DESCRIPTOR.name],
    source="""
message ReverbServerConfig {
  repeated gear_reverb.checkpoint.PriorityTableCheckpoint tables = 1;
  int32 port = 2;
}
""",
)
