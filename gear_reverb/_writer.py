"""Writes steps, and items that span the last few of them."""

import atexit
import logging
import os
import sys
import time
import weakref
from typing import Any

import tree

from gear_reverb import pybind
from gear_reverb._arguments import integer
from gear_reverb._column_paths import paths_of, with_paths

_logger = logging.getLogger(__name__)

_LAST_CLOSE_SECONDS = 10.0  # As for structured writers.


class Writer:
    """Writes steps, and items that span the last few of them. See `Client.writer`.

    Steps must all have the same structure, dtypes and shapes. For items that combine columns
    freely, use `Client.trajectory_writer`. Not for use by several threads.

    A writer that is destroyed, or open when the program ends, is closed; what has not been inserted
    after 10 seconds is given up, which the log says.
    """

    def __init__(self, internal_writer: pybind.Writer, *, options: str = "") -> None:
        """Called by `Client.writer`; takes over the core's writer. `options` is for `repr`."""
        self._writer = internal_writer
        self._options = options
        self._closed = False
        self._process = os.getpid()
        _left_open.add(self)

    def __enter__(self) -> "Writer":
        if self._closed:
            raise ValueError("Cannot reuse already closed Writer")
        _left_open.discard(self)  # The block closes it, maybe in another thread.
        return self

    def __exit__(self, exc_type: Any, *_: Any) -> None:
        if exc_type is None or issubclass(exc_type, Exception):
            self.close()
        else:  # After an interrupt nothing is waited for.
            self._closed = True
            self._finish_within(0)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):  # Missing if __init__ failed.
            self._close_within(_LAST_CLOSE_SECONDS)

    def append(self, data: Any) -> None:
        """Appends one step; nothing is sent until an item refers to it.

        Args:
          data: Nest of arrays, of the same structure in every step.

        Raises:
          TypeError: If a leaf's dtype is none that can be stored.
          ValueError: If a leaf is None, or a dtype, shape or the number of leaves differs from the
            step before.
          RuntimeError: If the writer is closed.
        """
        with_paths(self._writer.Append, lambda: paths_of(data), tree.flatten(data))

    def append_sequence(self, sequence: Any) -> None:
        """Appends several steps: the same as `append` for each index of the leading axis.

        Args:
          sequence: Nest of arrays of shape `[steps, ...]`.

        Raises:
          TypeError, ValueError: As for `append`, or if leaves have different numbers of steps.
          RuntimeError: If the writer is closed.
        """
        with_paths(self._writer.AppendSequence, lambda: paths_of(sequence), tree.flatten(sequence))

    def create_item(self, table: str, num_timesteps: int, priority: float) -> None:
        """Creates an item of the last `num_timesteps` steps; it may be sent later. See `flush`.

        Args:
          table: Name of the table.
          num_timesteps: Steps in the item, at most the writer's `max_sequence_length`.
          priority: The item's priority.

        Raises:
          ValueError: If `num_timesteps` is below 1 or above the steps there are, the table is
            unknown, or the steps do not match its signature.
          RuntimeError: If the writer is closed.
        """
        if integer("num_timesteps", num_timesteps) < 1:
            raise ValueError(f"num_timesteps ({num_timesteps}) must be a positive integer")
        self._writer.CreateItem(table, num_timesteps, priority)

    def flush(self) -> None:
        """Sends all items and blocks until the server has them.

        Raises:
          RuntimeError: If the writer is closed or the server fails.
        """
        self._writer.Flush()

    def close(self, retry_on_unavailable: bool = True) -> None:
        """Flushes and ends the stream; the writer cannot be used afterwards.

        Args:
          retry_on_unavailable: Whether to try again for as long as the server is unavailable.

        Raises:
          ValueError: If the writer is closed already.
          RuntimeError: If the server fails.
        """
        if self._closed:
            raise ValueError("close() has already been called on Writer.")
        self._closed = True
        _left_open.discard(self)
        self._writer.Close(retry_on_unavailable)

    def __repr__(self) -> str:
        return f"Writer({self._options}), closed: {self._closed}"

    def _close_within(self, seconds: float) -> None:
        self._closed = True
        # A forked child has the object, but not the connection; and at the end no call can wait.
        if self._process != os.getpid() or sys.is_finalizing():
            return
        _logger.warning("Writer-object deleted without calling .close explicitly.")
        self._finish_within(seconds)

    def _finish_within(self, seconds: float) -> None:
        try:
            self._writer.Flush(max(1, round(1000 * seconds)))
            self._writer.Close()
        except Exception as error:
            _logger.warning("Not all items of a Writer were inserted: %s", error)


_left_open: "weakref.WeakSet[Writer]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    end = time.monotonic() + _LAST_CLOSE_SECONDS
    for writer in list(_left_open):
        writer._close_within(end - time.monotonic())
