"""Signatures: nests of tensor specs and their encoding, TensorFlow's StructuredValue.

A spec is anything with a shape and a dtype that is not an array itself: our `TensorSpec`,
`tf.TensorSpec`, dm_env's `specs.Array`, `jax.ShapeDtypeStruct`. With a minimum and a maximum it is
a bounded spec. None of those packages is imported to tell.
"""

import collections
import functools
import importlib.util
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from gear_reverb import _dtypes, _tensor_proto
from gear_reverb.cc import struct_pb2
from gear_reverb.tensor_spec import BoundedTensorSpec, TensorSpec

_logger = logging.getLogger(__name__)


def encode(signature: Any) -> bytes:
    """The serialised StructuredValue of a nest of specs; dict keys are sorted.

    Nests are made of lists, tuples, named tuples, and mappings with string keys.

    Raises:
      ValueError: If a leaf is no spec, a key no string, or a dtype cannot be stored.
    """
    value = struct_pb2.StructuredValue()
    _encode(signature, value, ())
    return value.SerializeToString(deterministic=True)


def decode(signature: bytes, *, use_tensorflow: bool | None = None) -> Any:
    """The nest of specs that `encode` (ours or TensorFlow's) was given.

    Args:
      signature: A serialised StructuredValue.
      use_tensorflow: Whether leaves are `tf.TensorSpec` rather than our `TensorSpec`. By default
        they are where TensorFlow is installed and `GEAR_REVERB_TENSORFLOW` is not 0.

    Raises:
      ValueError: If the bytes are no nest of specs.
    """
    try:
        value = struct_pb2.StructuredValue.FromString(signature)
    except Exception as error:  # The class of protobuf's DecodeError depends on its version.
        raise ValueError(f"Signature is not a StructuredValue: {error}") from error
    return decode_message(value, use_tensorflow=use_tensorflow)


def decode_message(value: struct_pb2.StructuredValue, *, use_tensorflow: bool | None = None) -> Any:
    """Same as `decode`, of the parsed message."""
    tensorflow = _tensorflow() if use_tensorflow in (None, True) else None
    if use_tensorflow and tensorflow is None:
        raise ValueError("TensorFlow is not available")
    return _decode(value, functools.partial(_to_tensorflow, tensorflow) if tensorflow else None)


def encode_structure(nest: Any) -> struct_pb2.StructuredValue:
    """A nest of which only the structure counts, as a StructuredValue whose leaves are none.

    Raises:
      ValueError: If a key is no string.
    """
    value = struct_pb2.StructuredValue()
    _encode(nest, value, (), lambda leaf, value, path: value.none_value.SetInParent())
    return value


def decode_structure(value: struct_pb2.StructuredValue) -> Any:
    """The nest of None that `encode_structure` (ours or TensorFlow's) was given.

    Raises:
      ValueError: If a leaf is anything but none.
    """
    if value.WhichOneof("kind") == "none_value":
        return None
    return _decode_nest(value, decode_structure)


def _encode(
    nest: Any, value: struct_pb2.StructuredValue, path: tuple, encode_leaf: Any = None
) -> None:
    if isinstance(nest, Mapping):
        value.dict_value.SetInParent()
        for key, child in nest.items():
            if not isinstance(key, str):
                raise ValueError(f"Unsupported signature key at {path}: {key!r} is not a string")
            _encode(child, value.dict_value.fields[key], (*path, key), encode_leaf)
    elif isinstance(nest, tuple) and hasattr(nest, "_fields"):
        value.named_tuple_value.name = type(nest).__name__
        for key, child in zip(nest._fields, nest):
            pair = value.named_tuple_value.values.add(key=key)
            _encode(child, pair.value, (*path, key), encode_leaf)
    elif type(nest) in (list, tuple) or _is_plain_sequence(nest):
        sequence = value.tuple_value if isinstance(nest, tuple) else value.list_value
        sequence.SetInParent()
        for index, child in enumerate(nest):
            _encode(child, sequence.values.add(), (*path, index), encode_leaf)
    else:
        (encode_leaf or _encode_spec)(nest, value, path)


def _is_plain_sequence(nest: Any) -> bool:
    return isinstance(nest, (list, tuple)) and not hasattr(nest, "dtype")


def _encode_spec(spec: Any, value: struct_pb2.StructuredValue, path: tuple) -> None:
    is_spec = hasattr(spec, "shape") and hasattr(spec, "dtype") and not hasattr(spec, "__array__")
    if not is_spec or _is_composite(spec):
        raise ValueError(f"Unsupported signature spec: {spec!r} at {path}")
    bounded = hasattr(spec, "minimum") and hasattr(spec, "maximum")
    proto = value.bounded_tensor_spec_value if bounded else value.tensor_spec_value
    name = getattr(spec, "name", None)
    if name is not None:
        proto.name = str(name)
    try:
        proto.dtype = _dtypes.as_number(spec.dtype)
        _tensor_proto.set_shape(proto.shape, _axes(spec.shape))
        if bounded:
            dtype = _dtypes.from_number(proto.dtype)
            _tensor_proto.encode(spec.minimum, dtype, proto.minimum)
            _tensor_proto.encode(spec.maximum, dtype, proto.maximum)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Unsupported signature spec: {spec!r} at {path}: {error}") from error


def _is_composite(spec: Any) -> bool:
    """Whether it is TensorFlow's spec of something that is no plain tensor: ragged, or sparse."""
    mro = type(spec).__mro__
    bases = [base.__name__ for base in mro if base.__module__.startswith("tensorflow")]
    return "TypeSpec" in bases and "TensorSpec" not in bases


def _axes(shape: Any) -> Iterable[int | None] | None:
    """Sizes of a tuple or a tf.TensorShape; None for unknown rank or an unknown size."""
    if shape is None or (hasattr(shape, "as_list") and shape.rank is None):
        return None
    return [None if size is None else int(size) for size in shape]


def _decode(value: struct_pb2.StructuredValue, convert: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "tensor_spec_value":
        spec = TensorSpec(*_spec_fields(value.tensor_spec_value))
    elif kind == "bounded_tensor_spec_value":
        proto = value.bounded_tensor_spec_value
        shape, dtype, name = _spec_fields(proto)
        bounds = (_tensor_proto.decode(proto.minimum), _tensor_proto.decode(proto.maximum))
        spec = BoundedTensorSpec(shape, dtype, *bounds, name)
    else:
        return _decode_nest(value, lambda child: _decode(child, convert))
    return convert(spec) if convert else spec


def _decode_nest(value: struct_pb2.StructuredValue, decode_child: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "dict_value":
        fields = value.dict_value.fields
        return {key: decode_child(fields[key]) for key in sorted(fields)}
    if kind == "list_value":
        return [decode_child(child) for child in value.list_value.values]
    if kind == "tuple_value":
        return tuple(decode_child(child) for child in value.tuple_value.values)
    if kind == "named_tuple_value":
        pairs = value.named_tuple_value.values
        cls = _named_tuple(value.named_tuple_value.name, tuple(pair.key for pair in pairs))
        return cls(*(decode_child(pair.value) for pair in pairs))
    raise ValueError(f"Unsupported kind of value in a signature: {kind}")


def _spec_fields(proto: Any) -> tuple:
    return (
        _tensor_proto.get_shape(proto.shape),
        _dtypes.from_number(proto.dtype),
        proto.name or None,
    )


@functools.cache
def _named_tuple(name: str, fields: tuple[str, ...]) -> type:
    return collections.namedtuple(name, fields)


def _tensorflow() -> Any:
    """The tensorflow module, or None where it is absent, broken or switched off."""
    if os.environ.get("GEAR_REVERB_TENSORFLOW", "") == "0":
        return None
    if not _tensorflow_is_installed():
        return None
    try:
        import tensorflow
    except Exception as error:
        _logger.warning("TensorFlow is installed but cannot be imported: %s", error)
        return None
    return tensorflow


@functools.cache
def _tensorflow_is_installed() -> bool:
    return importlib.util.find_spec("tensorflow") is not None


def as_tensorflow(spec: TensorSpec) -> Any:
    """The `tf.TensorSpec` of our spec, or our spec itself where `decode` would give that."""
    tensorflow = _tensorflow()
    return spec if tensorflow is None else _to_tensorflow(tensorflow, spec)


def _to_tensorflow(tensorflow: Any, spec: TensorSpec) -> Any:
    dtype = tensorflow.as_dtype(_dtypes.as_number(spec.dtype))
    if not isinstance(spec, BoundedTensorSpec):
        return tensorflow.TensorSpec(spec.shape, dtype, spec.name)
    from tensorflow.python.framework import tensor_spec  # BoundedTensorSpec has no public name.

    return tensor_spec.BoundedTensorSpec(spec.shape, dtype, spec.minimum, spec.maximum, spec.name)
