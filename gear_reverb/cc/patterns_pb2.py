"""Patterns, conditions and priorities of a StructuredWriter: Reverb's patterns.proto.

Field numbers are Reverb's; package and file name are ours, so that both can be loaded.
"""

from gear_reverb.cc import _proto
from gear_reverb.cc import struct_pb2 as _struct_pb2

_proto.define(
    globals(),
    name="gear_reverb/cc/patterns.proto",
    package="gear_reverb.patterns",
    imports=[_struct_pb2.DESCRIPTOR.name],
    source="""
message PatternNode {
  int32 flat_source_index = 1;
  oneof start_or_none { int32 start = 2; }
  oneof stop_or_none { int32 stop = 3; }
  oneof step_or_none { int32 step = 4; }
}

message Condition {
  message ModuloEq { int32 mod = 1; int32 eq = 2; }
  oneof left {
    bool step_index = 1;
    bool steps_since_applied = 2;
    bool buffer_length = 3;
    bool is_end_episode = 4;
    int32 flat_source_index = 9;
  }
  oneof cmp {
    int32 eq = 5;
    int32 ge = 6;
    ModuloEq mod_eq = 7;
  }
  bool inverse = 8;
}

message Priority {
  message ConstantPriorityFn { double value = 1; }
  message TDError { double max_priority_weight = 1; int32 flat_source_index = 2; }
  oneof priority_fn {
    ConstantPriorityFn constant_fn = 1;
    TDError td_error = 2;
  }
}

message StructuredWriterConfig {
  repeated PatternNode flat = 1;
  gear_reverb.structure.StructuredValue pattern_structure = 2;
  string table = 3;
  Priority priority = 4;
  repeated Condition conditions = 5;
}
""",
)
