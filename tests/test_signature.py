"""Signatures: nests of specs, and their bytes, which are TensorFlow's."""

import collections
import importlib.util
import pickle
import types

import numpy as np
import pytest
import tree

from gear_reverb import BoundedTensorSpec, TensorSpec, _dtypes, _signature
from gear_reverb.cc import struct_pb2

Pair = collections.namedtuple("Pair", "x y")
NESTS = [
    TensorSpec([], np.int32),
    TensorSpec([None, 2], np.float32, "name"),
    TensorSpec(None, "string"),
    [],
    (),
    {},
    [TensorSpec([1], bool), (TensorSpec([0, 3], np.uint64),)],
    {"b": TensorSpec([], np.float16), "a": {"z": TensorSpec([], np.complex64)}},
    Pair(y=TensorSpec([], np.int8), x=[TensorSpec([5], np.float64, "n")]),
    BoundedTensorSpec([2], np.float32, 0, [1.0, 2.0], "z"),
    BoundedTensorSpec([2, 2], np.int8, [[1]], [[1, 2], [3, 4]]),
    BoundedTensorSpec([], np.uint8, 0, 255),
    BoundedTensorSpec([], np.uint64, 0, 2**64 - 1),
    BoundedTensorSpec([], np.int64, -(2**63), 2**63 - 1),
    BoundedTensorSpec([], bool, False, True),
    BoundedTensorSpec([], np.float16, -1.5, 65504),
    BoundedTensorSpec([], np.float64, -np.inf, np.inf),
    BoundedTensorSpec([], np.complex64, 0, 255 + 1j),
    BoundedTensorSpec([0], np.float32, np.zeros(0), np.zeros(0)),
]
EXTRA = [TensorSpec([2], dtype) for dtype in _dtypes.EXTRA_DTYPES]


@pytest.mark.parametrize("nest", [*NESTS, *EXTRA], ids=repr)
def test_bytes_give_the_nest_back(nest):
    decoded = _signature.decode(_signature.encode(nest), use_tensorflow=False)
    tree.assert_same_structure(decoded, nest, check_types=not tree.is_nested(nest))
    assert tree.flatten(decoded) == tree.flatten(nest)
    assert repr(decoded) == repr(sort_keys(nest))


def sort_keys(nest):
    if isinstance(nest, dict):
        return {key: sort_keys(nest[key]) for key in sorted(nest)}
    return nest


def test_bytes_do_not_depend_on_the_order_of_keys():
    a, b = TensorSpec([], np.int32), TensorSpec([], np.int64)
    assert _signature.encode({"a": a, "b": b}) == _signature.encode({"b": b, "a": a})
    ordered = collections.OrderedDict(b=b, a=a)
    assert _signature.encode(ordered) == _signature.encode({"a": a, "b": b})


def test_field_numbers():
    spec = TensorSpec([3], np.int32, "n")
    inner = bytes([10, 1, ord("n"), 18, 4, 18, 2, 8, 3, 24, 3])
    encoded = bytes([0x8A, 2, len(inner)]) + inner  # 33 << 3 | 2
    assert _signature.encode(spec) == encoded
    assert _signature.encode([spec])[:2] == bytes([0x9A, 3])  # 51
    assert _signature.encode((spec,))[:2] == bytes([0xA2, 3])  # 52
    assert _signature.encode({"k": spec})[:2] == bytes([0xAA, 3])  # 53
    assert _signature.encode(Pair(spec, spec))[:2] == bytes([0xB2, 3])  # 54
    assert _signature.encode(BoundedTensorSpec([], np.int32, 0, 1))[:2] == bytes([0x9A, 2])  # 35


def test_foreign_specs_are_recognised_by_their_looks():
    array = types.SimpleNamespace(shape=(2, 3), dtype=np.dtype("float32"), name="obs")
    assert _signature.encode(array) == _signature.encode(TensorSpec((2, 3), np.float32, "obs"))
    nameless = types.SimpleNamespace(shape=(2,), dtype=np.int8)
    assert _signature.encode(nameless) == _signature.encode(TensorSpec((2,), np.int8))
    bounded = types.SimpleNamespace(shape=(), dtype=np.int32, name=None, minimum=0, maximum=9)
    assert _signature.encode(bounded) == _signature.encode(BoundedTensorSpec((), np.int32, 0, 9))


@pytest.mark.parametrize(
    "nest",
    [
        3,
        None,
        "abc",
        {"a": None},
        np.zeros(3),
        np.float32(1),
        np.dtype("float32"),
        np.float32,
        {1: TensorSpec([], np.int32)},
        types.SimpleNamespace(shape=(2,), dtype=np.dtype("datetime64[s]")),
        types.SimpleNamespace(shape=("x",), dtype=np.int32),
        [BoundedTensorSpec([], bytes, b"a", b"b")],
    ],
    ids=repr,
)
def test_other_things_are_refused(nest):
    with pytest.raises(ValueError, match="nsupported signature"):
        _signature.encode(nest)


def test_errors_name_the_path():
    with pytest.raises(ValueError, match=r"\('a', 1\)"):
        _signature.encode({"a": [TensorSpec([], np.int32), 7]})


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff",
        b"",
        struct_pb2.StructuredValue(string_value="x").SerializeToString(),
        _signature.encode([TensorSpec([], np.int32)])[:-2] + bytes([24, 99]),
    ],
    ids=repr,
)
def test_bytes_that_are_no_signature(data):
    with pytest.raises(ValueError):
        _signature.decode(data, use_tensorflow=False)


def test_bounds_are_checked():
    value = struct_pb2.StructuredValue()
    value.ParseFromString(_signature.encode(BoundedTensorSpec([2], np.float32, [1, 2], [3, 4])))
    minimum = value.bounded_tensor_spec_value.minimum
    minimum.tensor_content = minimum.tensor_content[:-1]
    with pytest.raises(ValueError, match="7 bytes"):
        _signature.decode(value.SerializeToString(), use_tensorflow=False)
    minimum.ClearField("tensor_content")
    minimum.float_val.extend([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="3 values"):
        _signature.decode(value.SerializeToString(), use_tensorflow=False)
    minimum.tensor_shape.dim.add(size=1 << 40)
    with pytest.raises(ValueError, match="Cannot decode"):
        _signature.decode(value.SerializeToString(), use_tensorflow=False)


def test_repeated_values_may_be_left_off():
    value = struct_pb2.StructuredValue()
    value.ParseFromString(_signature.encode(BoundedTensorSpec([3], np.int32, 5, [1, 2, 3])))
    minimum = value.bounded_tensor_spec_value.minimum
    minimum.tensor_shape.dim.add(size=3)
    decoded = _signature.decode(value.SerializeToString(), use_tensorflow=False)
    np.testing.assert_array_equal(decoded.minimum, [5, 5, 5])


# Specs.


def test_specs_are_values():
    spec = TensorSpec([None, 2], "float32", "n")
    assert (spec.shape, spec.dtype, spec.name) == ((None, 2), np.dtype("float32"), "n")
    assert spec == TensorSpec((None, 2), np.float32, "n")
    assert len({spec, TensorSpec((None, 2), np.float32, "n")}) == 1
    assert spec != TensorSpec((None, 2), np.float32)
    assert pickle.loads(pickle.dumps(spec)) == spec
    bounded = BoundedTensorSpec([2], np.int32, [0, 1], 5)
    assert bounded == BoundedTensorSpec([2], np.int32, [0, 1], 5) != spec
    assert bounded != BoundedTensorSpec([2], np.int32, [0, 2], 5)
    assert pickle.loads(pickle.dumps(bounded)) == bounded
    assert not tree.is_nested(spec)
    with pytest.raises(AttributeError):
        spec.shape = ()


@pytest.mark.parametrize("dtype", ["string", str, bytes, object, "U5", "S3"])
def test_strings_are_objects(dtype):
    assert TensorSpec([], dtype).dtype == np.dtype(object)


@pytest.mark.parametrize(
    "shape,dtype", [([-1], np.int32), ([1], "datetime64[s]"), ([1], None), ([1], "nonsense")]
)
def test_bad_specs_are_refused(shape, dtype):
    with pytest.raises(ValueError):
        TensorSpec(shape, dtype)


# TensorFlow.

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)


@needs_tensorflow
@pytest.mark.parametrize("nest", NESTS, ids=repr)
def test_bytes_are_those_of_tensorflow(nest):
    from tensorflow.python.saved_model import nested_structure_coder

    ours = _signature.encode(nest)
    decoded = _signature.decode(ours, use_tensorflow=True)
    theirs = nested_structure_coder.encode_structure(decoded)
    assert theirs.SerializeToString(deterministic=True) == ours
    assert _signature.encode(decoded) == ours
    assert repr(nested_structure_coder.decode_proto(type(theirs).FromString(ours))) == repr(decoded)


@needs_tensorflow
def test_tensorflow_can_be_switched_off(monkeypatch):
    import tensorflow as tf

    encoded = _signature.encode(TensorSpec([2], np.float32))
    monkeypatch.delenv("GEAR_REVERB_TENSORFLOW", raising=False)
    assert _signature.decode(encoded) == tf.TensorSpec([2], tf.float32)
    monkeypatch.setenv("GEAR_REVERB_TENSORFLOW", "0")
    assert _signature.decode(encoded) == TensorSpec([2], np.float32)


def test_without_tensorflow_specs_are_ours(monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_TENSORFLOW", "0")
    spec = TensorSpec([2], np.float32)
    assert _signature.decode(_signature.encode(spec)) == spec
    with pytest.raises(ValueError, match="TensorFlow"):
        _signature.decode(_signature.encode(spec), use_tensorflow=True)
