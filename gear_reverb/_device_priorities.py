"""Priorities that are computed on a GPU, on their way to a table."""

import math
import os
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

    def __init__(
        self,
        update: Callable[[Any, Any], None],
        gpu: int | None,
        current_stream: Callable[[], int] | None,
    ) -> None:
        """Of a table that `update(keys, priorities)` tells.

        `gpu` is where arrays may be, if anywhere. Arrays are as they are when `add` is called, in
        the order of work on the current stream; None: there is no such stream.
        """
        self._update = update
        self._gpu = gpu
        self._current_stream = current_stream
        self._copies: _native.HostCopies | None = None
        self._pending: deque[tuple[Any, Any]] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    def add(self, keys: Any, priorities: Any, stream: int | None = None) -> None:
        """Tells the table what has come, then sends for the arrays.

        Args:
          keys: Where they are.
          priorities: Likewise.
          stream: In place of the current one.

        Raises:
          TypeError, ValueError: If the arrays are no keys and priorities that can be sent for; or
            as `tell`.
          RuntimeError: Once closed.
        """
        sizes = [math.prod(_shape(array)) for array in (keys, priorities)]
        if sizes[0] != sizes[1]:
            raise ValueError(f"There are {sizes[0]} keys, but {sizes[1]} priorities")
        with self._lock:
            if self._closed:
                raise RuntimeError("The sampler has been closed")
            self._tell(at_most=_MOST_PENDING - 1)
            self._pending.append((self._to_host(keys, stream), self._to_host(priorities, stream)))
            self._tell(at_most=_MOST_PENDING)

    def tell(self) -> None:
        """Tells the table what has come; the errors of `Client.update_priorities`."""
        if self._pending and self._lock.acquire(blocking=False):  # Else another thread does so.
            try:
                self._tell(at_most=_MOST_PENDING)
            finally:
                self._lock.release()

    def close(self) -> None:
        """Waits for all of it, and tells the table; raises the first error at the end.

        In the child of a fork, where there is no GPU and the lock is as it happened to be, nothing.
        """
        if os.getpid() != self._process:
            return
        errors = []
        with self._lock:
            self._closed = True
            while self._pending:
                try:
                    self._tell(at_most=0)
                except Exception as error:
                    errors.append(error)
            self._copies = None
        if errors:
            raise errors[0]

    def _tell(self, at_most: int) -> None:
        while self._pending:
            keys, priorities = self._pending[0]
            if len(self._pending) <= at_most and not (keys.done and priorities.done):
                return
            self._pending.popleft()
            self._update(keys.numpy(), priorities.numpy())

    def _to_host(self, array: Any, stream: int | None) -> Any:
        if self._gpu is None or not _is_on_gpu(array):
            return _Here(np.array(array) if hasattr(array, "__array__") else list(array))
        if self._copies is None:
            self._copies = _native.HostCopies(self._gpu)
        if stream is None and self._current_stream is not None:
            stream = self._current_stream()
        return self._copies.start(array, stream)


class _Here:
    """A copy that is there at once; a list stays one, since NumPy would make large keys floats."""

    done = True

    def __init__(self, values: Any) -> None:
        self._values = values

    def numpy(self) -> Any:
        return self._values


def _shape(array: Any) -> tuple[int, ...]:
    return tuple(array.shape) if hasattr(array, "shape") else np.shape(array)


def _is_on_gpu(array: Any) -> bool:
    where = getattr(array, "__dlpack_device__", None)
    return where is not None and where()[0] == 2  # DLPack's CUDA.
