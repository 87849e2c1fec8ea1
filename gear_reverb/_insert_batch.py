"""Stacked nests: what `insert_batch` and `append_batch` take."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

from gear_reverb import pybind
from gear_reverb._column_paths import paths_of, with_paths


def stacked_columns(data: Any, what: str) -> tuple[list[np.ndarray], int]:
    """The leaves of `data` as arrays, and the length of their first axis.

    Args:
      data: Nest of arrays `[N, ...]`.
      what: What N counts, for error messages.

    Raises:
      ValueError: If there is no leaf, a leaf is None or a scalar, or the leaves differ in N.
    """
    paths_and_leaves = tree.flatten_with_path(data)
    if not paths_and_leaves:
        raise ValueError("data has no leaf")
    arrays = []
    for path, leaf in paths_and_leaves:
        if leaf is None:
            raise ValueError(f"Leaf {path} is None")
        arrays.append(leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf))
    check_stacked([path for path, _ in paths_and_leaves], arrays, what)
    return arrays, len(arrays[0])


def insert(data: Any, *args: Any) -> np.ndarray:
    """What the core's `insert_batch` gives; its errors name the leaves of `data`."""
    return with_paths(pybind.insert_batch, lambda: paths_of(data), *args)


def check_stacked(paths: Sequence[tuple], arrays: Sequence[np.ndarray], what: str) -> None:
    """Raises ValueError unless all arrays have a first axis, of the same length."""
    for path, array in zip(paths, arrays):
        if array.ndim == 0:
            raise ValueError(f"Leaf {path} is a scalar: it has no axis of {what}")
        if len(array) != len(arrays[0]):
            raise ValueError(
                f"Leaf {path} has {len(array)} {what}, but leaf {paths[0]} has {len(arrays[0])}"
            )


def priorities_of(priorities: Any, size: int) -> np.ndarray:
    """One float64 per item, from one for all or one per item.

    Raises:
      ValueError: If there is another number of them, or one is not finite.
    """
    array = np.asarray(priorities, np.float64)
    if array.ndim == 0:
        array = np.full(size, array)
    elif array.shape != (size,):
        raise ValueError(f"priorities has shape {array.shape}, but there are {size} items")
    if not np.isfinite(array).all():
        (bad,) = np.nonzero(~np.isfinite(array))
        raise ValueError(f"priorities[{bad[0]}] is {array[bad[0]]}: priorities must be finite")
    return array
