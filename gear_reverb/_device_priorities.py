"""Priorities that are computed on a GPU, on their way to a table."""

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gear_reverb import _native

# Updates on their way; the next one waits for the oldest.
_MOST_PENDING = 16


class DevicePriorities:
    """Updates of one table's priorities, in order. Thread-safe."""

    def __init__(self, update: Callable[[Any, Any], None], gpu: int | None) -> None:
        """`update(keys, priorities)` tells the table; `gpu` is where arrays may be, if anywhere."""
        self._update = update
        self._gpu = gpu
        self._copies: _native.HostCopies | None = None
        self._pending: deque[tuple[Any, Any]] = deque()
        self._lock = threading.Lock()

    def add(self, keys: Any, priorities: Any) -> None:
        """Sends for the arrays, and tells the table what has come before.

        Raises:
          TypeError, ValueError: If the arrays are no keys and priorities that can be sent for; or
            as `tell`.
        """
        sizes = [math.prod(_shape(array)) for array in (keys, priorities)]
        if sizes[0] != sizes[1]:
            raise ValueError(f"There are {sizes[0]} keys, but {sizes[1]} priorities")
        with self._lock:
            self._pending.append((self._to_host(keys), self._to_host(priorities)))
            self._tell(at_most=_MOST_PENDING)

    def tell(self) -> None:
        """Tells the table what has come; the errors of `Client.update_priorities`."""
        if self._pending and self._lock.acquire(blocking=False):  # Else another thread does so.
            try:
                self._tell(at_most=_MOST_PENDING)
            finally:
                self._lock.release()

    def close(self) -> None:
        """Waits for all of it, and tells the table."""
        with self._lock:
            self._tell(at_most=0)
            self._copies = None

    def _tell(self, at_most: int) -> None:
        while self._pending:
            keys, priorities = self._pending[0]
            if len(self._pending) <= at_most and not (keys.done and priorities.done):
                return
            self._pending.popleft()
            self._update(keys.numpy(), priorities.numpy())

    def _to_host(self, array: Any) -> Any:
        if self._gpu is None or not _is_on_gpu(array):
            return _Here(np.array(array))
        if self._copies is None:
            self._copies = _native.HostCopies(self._gpu)
        return self._copies.start(array)


class _Here:
    """A copy that is there at once."""

    done = True

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def numpy(self) -> np.ndarray:
        return self._array


def _shape(array: Any) -> tuple[int, ...]:
    return tuple(array.shape) if hasattr(array, "shape") else np.shape(array)


def _is_on_gpu(array: Any) -> bool:
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and where()[0] == 2  # DLPack's CUDA.
