"""Nests of tensor specs on the wire: the part of TensorFlow's struct.proto that signatures use.

Field numbers are TensorFlow's; package and file name are ours, so that both can be loaded. Dtypes
are plain numbers (`int32` and an enum look alike on the wire).
"""

from gear_reverb.cc import _proto

_proto.define(
    globals(),
    name="gear_reverb/cc/struct.proto",
    package="gear_reverb.structure",
    source="""
message TensorShapeProto {
  message Dim { int64 size = 1; string name = 2; }
  repeated Dim dim = 2;
  bool unknown_rank = 3;
}

message TensorProto {
  int32 dtype = 1;
  TensorShapeProto tensor_shape = 2;
  int32 version_number = 3;
  bytes tensor_content = 4;
  repeated float float_val = 5;
  repeated double double_val = 6;
  repeated int32 int_val = 7;
  repeated bytes string_val = 8;
  repeated float scomplex_val = 9;
  repeated int64 int64_val = 10;
  repeated bool bool_val = 11;
  repeated double dcomplex_val = 12;
  repeated int32 half_val = 13;
  repeated uint32 uint32_val = 16;
  repeated uint64 uint64_val = 17;
  bytes float8_val = 18;
}

message TensorSpecProto {
  string name = 1;
  TensorShapeProto shape = 2;
  int32 dtype = 3;
}

message BoundedTensorSpecProto {
  string name = 1;
  TensorShapeProto shape = 2;
  int32 dtype = 3;
  TensorProto minimum = 4;
  TensorProto maximum = 5;
}

message NoneValue {}
message ListValue { repeated StructuredValue values = 1; }
message TupleValue { repeated StructuredValue values = 1; }
message DictValue { map<string, StructuredValue> fields = 1; }
message PairValue { string key = 1; StructuredValue value = 2; }
message NamedTupleValue { string name = 1; repeated PairValue values = 2; }

message StructuredValue {
  oneof kind {
    NoneValue none_value = 1;
    double float64_value = 11;
    sint64 int64_value = 12;
    string string_value = 13;
    bool bool_value = 14;
    TensorShapeProto tensor_shape_value = 31;
    int32 tensor_dtype_value = 32;
    TensorSpecProto tensor_spec_value = 33;
    BoundedTensorSpecProto bounded_tensor_spec_value = 35;
    ListValue list_value = 51;
    TupleValue tuple_value = 52;
    DictValue dict_value = 53;
    NamedTupleValue named_tuple_value = 54;
    TensorProto tensor_value = 55;
    TensorProto numpy_value = 56;
  }
}
""",
)
