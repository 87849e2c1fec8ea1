"""NumPy dtypes and the dtype numbers that travel on the wire (TensorFlow's `DataType`)."""

from typing import Any

import numpy as np

try:
    import ml_dtypes
except ImportError:  # Then a table cannot hold bfloat16 or float8.
    ml_dtypes = None

STRING = 7

_NUMBER_BY_NAME = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
_EXTRA_NUMBER_BY_NAME = {
    "bfloat16": 14,
    "float8_e5m2": 24,
    "float8_e4m3fn": 25,
    "float8_e4m3fnuz": 26,
    "float8_e4m3b11fnuz": 27,
    "float8_e5m2fnuz": 28,
}

EXTRA_DTYPES: tuple[np.dtype, ...] = tuple(
    np.dtype(getattr(ml_dtypes, name)) for name in _EXTRA_NUMBER_BY_NAME if hasattr(ml_dtypes, name)
)

_NUMBER_BY_NAME.update(_EXTRA_NUMBER_BY_NAME)
_DTYPE_BY_NUMBER = {
    n: np.dtype(name) for name, n in _NUMBER_BY_NAME.items() if n < 14 or 17 <= n < 24
}
_DTYPE_BY_NUMBER[STRING] = np.dtype(object)
_DTYPE_BY_NUMBER.update({_NUMBER_BY_NAME[dtype.name]: dtype for dtype in EXTRA_DTYPES})


def as_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype of `dtype`: a NumPy dtype, scalar type or name, or a `tf.DType`.

    Every kind of string (`bytes`, `str`, "string", `tf.string`) is the dtype `object`.

    Raises:
      ValueError: If no column can have this dtype.
    """
    return _DTYPE_BY_NUMBER[as_number(dtype)]


def as_number(dtype: Any) -> int:
    """The wire's number of `dtype`, which is anything that `as_dtype` takes.

    Raises:
      ValueError: If no column can have this dtype.
    """
    number = getattr(dtype, "as_datatype_enum", None)  # tf.DType
    if number is None:
        number = _number_of_numpy(dtype)
    if number not in _DTYPE_BY_NUMBER:
        raise ValueError(f"Unsupported dtype: {dtype!r}")
    return int(number)


def from_number(number: int) -> np.dtype:
    """The NumPy dtype of a number from the wire.

    Raises:
      ValueError: If the number is unknown, or its dtype needs `ml_dtypes` and that is missing.
    """
    try:
        return _DTYPE_BY_NUMBER[number]
    except KeyError:
        raise ValueError(f"Unsupported dtype number: {number}") from None


def _number_of_numpy(dtype: Any) -> int | None:
    if isinstance(dtype, str) and dtype == "string":
        return STRING
    if dtype is None:  # np.dtype(None) is float64: a forgotten argument, more likely.
        return None
    try:
        numpy_dtype = np.dtype(dtype)
    except TypeError:
        return None
    if numpy_dtype.kind in "OSU":
        return STRING
    return _NUMBER_BY_NAME.get(numpy_dtype.name)
