"""What a table's signature says of one column, without TensorFlow."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gear_reverb import _dtypes


class TensorSpec:
    """Shape, dtype and name of a tensor. Immutable.

    Attributes:
      shape: One entry per axis, `None` for an axis of any size; `None` for any rank. The shape of
        a trajectory's column counts its time axis: `(None, 84, 84)`.
      dtype: NumPy dtype; `object` for strings.
      name: Name of the column, or None.
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(
        self, shape: Iterable[int | None] | None, dtype: Any, name: str | None = None
    ) -> None:
        """Any dtype that NumPy understands, "string", or a `tf.DType`.

        Raises:
          ValueError: If an axis is negative or the dtype cannot be stored.
        """
        self._shape = None if shape is None else tuple(_axis(size) for size in shape)
        self._dtype = _dtypes.as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """One entry per axis, None for any size; None for any rank."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype; `object` for strings."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """Name of the column, or None."""
        return self._name

    def _key(self) -> tuple:
        return (self._shape, self._dtype, self._name)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype}, name={self._name!r})"

    def __reduce__(self):
        return type(self), (self._shape, self._dtype, self._name)


class BoundedTensorSpec(TensorSpec):
    """A `TensorSpec` whose values lie in `[minimum, maximum]`, both inclusive.

    Attributes:
      minimum, maximum: Arrays of the spec's dtype that broadcast to its shape.
    """

    __slots__ = ("_maximum", "_minimum")

    def __init__(
        self,
        shape: Iterable[int | None] | None,
        dtype: Any,
        minimum: Any,
        maximum: Any,
        name: str | None = None,
    ) -> None:
        super().__init__(shape, dtype, name)
        self._minimum = np.array(minimum, dtype=self.dtype)
        self._maximum = np.array(maximum, dtype=self.dtype)
        self._minimum.setflags(write=False)
        self._maximum.setflags(write=False)

    @property
    def minimum(self) -> np.ndarray:
        """The smallest values, inclusive; broadcasts to the shape. Read-only."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray:
        """The largest values, inclusive; broadcasts to the shape. Read-only."""
        return self._maximum

    def _key(self) -> tuple:
        bounds = (self._minimum, self._maximum)
        return (*super()._key(), *(b.shape for b in bounds), *(tuple(b.flat) for b in bounds))

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self._shape}, dtype={self._dtype}, name={self._name!r}, "
            f"minimum={self._minimum!r}, maximum={self._maximum!r})"
        )

    def __reduce__(self):
        return type(self), (self._shape, self._dtype, self._minimum, self._maximum, self._name)


def _axis(size: Any) -> int | None:
    if size is None:
        return None
    size = int(size)
    if size < 0:
        raise ValueError(f"An axis is a size or None, got {size}")
    return size
