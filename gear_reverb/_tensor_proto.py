"""Small constant tensors (a spec's bounds) in TensorFlow's TensorProto, as TensorFlow writes them.

A single element travels in the typed field of its dtype, several as raw little-endian bytes.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gear_reverb import _dtypes
from gear_reverb.cc import struct_pb2

# Field of a single element by dtype number; half_val holds the bits of 16-bit floats.
_VALUE_FIELD = {
    1: "float_val",
    2: "double_val",
    3: "int_val",
    4: "int_val",
    5: "int_val",
    6: "int_val",
    8: "scomplex_val",
    9: "int64_val",
    10: "bool_val",
    14: "half_val",
    17: "int_val",
    18: "dcomplex_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
}
_BITS = {14: np.uint16, 19: np.uint16}
_MAX_ELEMENTS = 1 << 24  # A bound larger than this is an attack, or a mistake.


def set_shape(proto: struct_pb2.TensorShapeProto, axes: Iterable[int | None] | None) -> None:
    """Writes sizes, None for an axis of any size, or None for unknown rank."""
    proto.SetInParent()
    if axes is None:
        proto.unknown_rank = True
        return
    for size in axes:
        proto.dim.add(size=-1 if size is None else size)


def get_shape(proto: struct_pb2.TensorShapeProto) -> tuple[int | None, ...] | None:
    """The inverse of `set_shape`."""
    if proto.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in proto.dim)


def encode(array: Any, dtype: np.dtype, proto: struct_pb2.TensorProto) -> None:
    """Writes `array`, cast to `dtype`, a dtype with a number.

    Raises:
      ValueError: If strings are given, or `array` cannot be cast.
    """
    array = np.asarray(array, dtype=dtype)
    number = _dtypes.as_number(dtype)
    if number == _dtypes.STRING:
        raise ValueError("Strings have no bounds")
    proto.dtype = number
    set_shape(proto.tensor_shape, array.shape)
    field = _VALUE_FIELD.get(number)
    if array.size != 1 or field is None:
        proto.tensor_content = array.tobytes()
    elif "complex" in field:
        element = array.item()
        getattr(proto, field).extend([element.real, element.imag])
    else:
        element = array.reshape(()).view(_BITS[number]) if number in _BITS else array
        getattr(proto, field).append(element.item())


def decode(proto: struct_pb2.TensorProto) -> np.ndarray:
    """The array of a TensorProto; typed fields may leave off repeats of their last element.

    Raises:
      ValueError: If content and shape disagree, or the dtype has no such representation.
    """
    dtype = _dtypes.from_number(proto.dtype)
    shape = get_shape(proto.tensor_shape)
    if shape is None or None in shape or dtype.hasobject or math.prod(shape) > _MAX_ELEMENTS:
        raise ValueError(f"Cannot decode a constant of dtype {dtype} and shape {shape}")
    size = math.prod(shape)
    if proto.tensor_content:
        if len(proto.tensor_content) != size * dtype.itemsize:
            raise ValueError(
                f"A constant of dtype {dtype} and shape {shape} has "
                f"{len(proto.tensor_content)} bytes"
            )
        return np.frombuffer(proto.tensor_content, dtype).reshape(shape)
    values = _values(proto, dtype)
    if len(values) > size:
        raise ValueError(f"A constant of shape {shape} has {len(values)} values")
    if len(values) < size:
        last = values[-1:] if len(values) else np.zeros(1, dtype)
        values = np.concatenate([values, np.repeat(last, size - len(values))])
    return values.reshape(shape)


def _values(proto: struct_pb2.TensorProto, dtype: np.dtype) -> np.ndarray:
    field = _VALUE_FIELD.get(proto.dtype)
    values = getattr(proto, field) if field else ()
    if field in ("scomplex_val", "dcomplex_val"):
        pairs = np.array(values, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype)
    if proto.dtype in _BITS:
        return np.array(values, np.uint32).astype(_BITS[proto.dtype]).view(dtype)
    return np.array(values).astype(dtype)
