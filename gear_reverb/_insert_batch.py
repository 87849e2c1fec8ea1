"""Stacked nests: what `insert_batch` and `append_batch` take."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from gear_reverb import pybind
from gear_reverb._column_paths import paths_of, with_paths


def stacked_columns(steps: Any, what: str) -> tuple[list[np.ndarray], int]:
    """The leaves of `steps` as arrays, and the length of their first axis.

    Args:
      steps: Nest of arrays `[N, ...]`.
      what: What N counts, for error messages.

    Raises:
      ValueError: If there is no leaf, a leaf is None or a scalar, or the leaves differ in N.
    """
    leaves = tree.flatten(steps)
    if not leaves:
        raise ValueError("steps has no leaf")
    for i, leaf in enumerate(leaves):
        if leaf is None:
            raise ValueError(f"Leaf {paths_of(steps)[i]} is None")
    arrays = [leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf) for leaf in leaves]
    check_stacked(lambda: paths_of(steps), arrays, what)
    return arrays, len(arrays[0])


def insert(steps: Any, *args: Any) -> np.ndarray:
    """What the core's `insert_batch` gives; its errors name the leaves of `steps`."""
    return with_paths(pybind.insert_batch, lambda: paths_of(steps), *args)


def check_stacked(
    paths: Callable[[], Sequence[tuple]], arrays: Sequence[np.ndarray], what: str
) -> None:
    """Raises ValueError unless all arrays have a first axis, of the same length."""
    for i, array in enumerate(arrays):
        if array.ndim == 0:
            raise ValueError(f"Leaf {paths()[i]} is a scalar: it has no axis of {what}")
        if len(array) != len(arrays[0]):
            raise ValueError(
                f"Leaf {paths()[i]} has {len(array)} {what}, "
                f"but leaf {paths()[0]} has {len(arrays[0])}"
            )


def priorities_of(priorities: Any, size: int) -> np.ndarray:
    """One float64 per item, from one for all or one per item.

    Raises:
      ValueError: If there is another number of them.
    """
    array = np.asarray(priorities, np.float64)
    if array.ndim == 0:
        array = np.full(size, array)
    elif array.shape != (size,):
        raise ValueError(f"priorities has shape {array.shape}, but there are {size} items")
    return array
