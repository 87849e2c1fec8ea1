"""Writes items by static patterns over the steps that are appended.

A *config* says which steps of which columns make an item (the *pattern*), when (the *conditions*),
for which table, and with which priority. `StructuredWriter` applies all configs after each step:

    step_structure = {"observation": None, "reward": None}
    config = create_config(
        pattern=pattern_from_transform(
            step_structure,
            lambda step: {"observations": step["observation"][-2:], "reward": step["reward"][-1]},
        ),
        table="replay",
        conditions=[Condition.step_index() % 2 == 1],
    )
    writer = client.structured_writer([config])

Patterns count from the newest step: `[-1]` is that step without time axis, `[-3:]` are the last
three, `[-3:-1]` the two before the last, `[-5::2]` every other one of the last five.
"""

import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NewType

import tree

from gear_reverb import _columns, _signature, errors, pybind
from gear_reverb._arguments import integer
from gear_reverb._column_paths import raise_with_paths
from gear_reverb._conditions import Condition, ConditionProto, constant_priority_fn, td_error
from gear_reverb._pattern_signature import infer_signature, unpack_pattern
from gear_reverb.cc import patterns_pb2

__all__ = [
    "Condition",
    "ConditionProto",
    "Config",
    "Pattern",
    "PatternTransform",
    "ReferenceStep",
    "StructuredWriter",
    "constant_priority_fn",
    "create_config",
    "create_reference_step",
    "infer_signature",
    "pattern_from_transform",
    "td_error",
    "unpack_pattern",
]

Config = patterns_pb2.StructuredWriterConfig

Pattern = tree.Structure[patterns_pb2.PatternNode]
"""A nest of `PatternNode`: the structure of an item."""
ReferenceStep = NewType("ReferenceStep", Any)
"""A nest in the structure of steps, whose leaves make `PatternNode`s when indexed."""
PatternTransform = Callable[[ReferenceStep], Pattern]

_logger = logging.getLogger(__name__)

_LAST_FLUSH_MS = 10_000  # As the core's for writers that are destroyed earlier.


class StructuredWriter:
    """Appends steps, and inserts the items that its configs make of them.

    Made by `Client.structured_writer`. Not for use by several threads. There is no check against
    the tables' signatures: they are best made by `infer_signature`. What has not been flushed is
    flushed when the writer is destroyed.
    """

    def __init__(self, cpp_writer: "pybind.StructuredWriter") -> None:
        """Called by `Client.structured_writer`; takes over the core's writer."""
        self._writer = cpp_writer
        self._width: int | None = None
        self._paths: list[tuple] = []
        self._plan: Callable[[Any], list | None] | None = None

    def append(self, data: Any, *, partial_step: bool = False) -> None:
        """Appends one step, or a part of one, and inserts the items that are due.

        Args:
          data: Nest of arrays. Always of the same structure; a leaf may be None for a column
            without a value in this (part of the) step. Items refer to no step without a value.
          partial_step: Whether later calls add more to the same step; the call that ends the step
            must not set it. Items are inserted as soon as all their columns are there, at most
            once per config and step.

        Raises:
          TypeError: If a leaf's dtype is none that can be stored.
          ValueError: If the nest has not as many leaves as the first one, or a leaf's dtype or
            shape is not that of its column; or, with the step appended, if an item's priority
            cannot be computed.
          RuntimeError: If a column is given twice within a step, or the server cannot be reached
            or has refused earlier items.
        """
        flat = None if self._plan is None else self._plan(data)
        if flat is None:
            flat = self._flatten(data)
        try:
            if partial_step:
                self._writer.AppendPartial(flat)
            else:
                self._writer.Append(flat)
        except (TypeError, ValueError, RuntimeError) as error:
            raise_with_paths(error, self._paths, "{column} {number} (path={path})")

    def flush(self, block_until_num_items: int = 0, timeout_ms: int | None = None) -> None:
        """Blocks until the server has inserted all items but the last few.

        Args:
          block_until_num_items: Items that may remain pending.
          timeout_ms: Longest time to block, in milliseconds; None for no limit. The items are
            inserted all the same.

        Raises:
          ValueError: If `block_until_num_items` is negative.
          DeadlineExceededError: If the time is up.
        """
        if integer("block_until_num_items", block_until_num_items) < 0:
            raise ValueError(f"block_until_num_items must be >= 0, got {block_until_num_items}")
        try:
            self._writer.Flush(block_until_num_items, timeout_ms)
        except errors.DeadlineExceededError as error:
            raise errors.timed_out("Flush", timeout_ms) from error

    def end_episode(self, clear_buffers: bool = True, timeout_ms: int | None = None) -> None:
        """Inserts the items that are due at the end, flushes, and begins a new episode.

        An open, partial step ends with it.

        Args:
          clear_buffers: Whether the history is emptied; if not, items may span episodes.
          timeout_ms: Longest time to block, in milliseconds; None for no limit. The episode ends,
            and the items are inserted, all the same.

        Raises:
          DeadlineExceededError: If the time is up.
        """
        try:
            self._writer.EndEpisode(clear_buffers, timeout_ms)
        except errors.DeadlineExceededError as error:
            raise errors.timed_out("End episode", timeout_ms) from error

    @property
    def step_is_open(self) -> bool:
        """Whether the last `append` was of a partial step."""
        return self._writer.step_is_open

    def _flatten(self, data: Any) -> list:
        leaves = tree.flatten_with_path(data)
        if self._width is None:
            self._width = len(leaves)
            self._paths = [path for path, _ in leaves]
        if len(leaves) != self._width:
            raise ValueError(
                f"Flattened data has an unexpected length, got {len(leaves)} but wanted "
                f"{self._width}."
            )
        flat = [leaf for _, leaf in leaves]
        for leaf in flat:
            _columns.learn_leaf_type(leaf)
        self._plan = _columns.compile_flatten(data, _columns.leaf_types)
        return flat


def flush_at_exit(writer: StructuredWriter) -> None:
    """Has the writer flushed before the interpreter shuts down, all of them in at most 10 seconds.

    By the time that the interpreter destroys what is left, calls can no longer wait.
    """
    _flushed_at_exit[writer] = os.getpid()


_flushed_at_exit: "weakref.WeakKeyDictionary[StructuredWriter, int]" = weakref.WeakKeyDictionary()


@atexit.register
def _flush_all() -> None:
    end = time.monotonic() + _LAST_FLUSH_MS / 1000
    for writer, process in list(_flushed_at_exit.items()):
        if process != os.getpid():  # A forked child has the object, but not the connection.
            continue
        try:
            writer.flush(timeout_ms=max(0, int(1000 * (end - time.monotonic()))))
        except Exception as error:
            _logger.warning("Not all items of a StructuredWriter were inserted at exit: %s", error)


class _RefNode:
    """A column of the reference step; indexing it gives a node of a pattern."""

    def __init__(self, idx: int) -> None:
        self._idx = idx

    def __getitem__(self, key: int | slice) -> patterns_pb2.PatternNode:
        """`[-i]` is one step without time axis, a slice are several.

        Raises:
          ValueError: If `key` is neither an integer nor a slice, or out of the range of int32.
        """
        if isinstance(key, int):
            return patterns_pb2.PatternNode(flat_source_index=self._idx, stop=key)
        if isinstance(key, slice):
            return patterns_pb2.PatternNode(
                flat_source_index=self._idx, start=key.start, stop=key.stop, step=key.step
            )
        raise ValueError(f"Key must be int or slice but got {key} (type {type(key)}).")


def create_reference_step(step_structure: Any) -> ReferenceStep:
    """A nest in the structure of steps whose leaves make nodes of a pattern when indexed.

    Args:
      step_structure: Nest in the structure of the data that will be appended; leaves do not count.
    """
    width = len(tree.flatten(step_structure))
    return tree.unflatten_as(step_structure, [_RefNode(index) for index in range(width)])


def pattern_from_transform(
    step_structure: Any, transform: Callable[[ReferenceStep], Pattern]
) -> Pattern:
    """The pattern that `transform` makes of a reference step.

    Args:
      step_structure: Nest in the structure of the data that will be appended; leaves do not count.
      transform: From a reference step to the item's structure, a nest of indexed leaves.
    """
    return transform(create_reference_step(step_structure))


def create_config(
    pattern: Pattern,
    table: str,
    conditions: Sequence[ConditionProto] = (),
    priority: patterns_pb2.Priority | None = None,
) -> Config:
    """Says what items to make, and when.

    Args:
      pattern: Nest of `PatternNode`, as `pattern_from_transform` makes it.
      table: Name of the table for the items.
      conditions: All of them must hold for an item to be made.
      priority: What priority the items get; by default 1.

    Raises:
      TypeError: If a leaf is no `PatternNode`, or a condition is incomplete.
    """
    return Config(
        flat=tree.flatten(pattern),
        pattern_structure=_signature.encode_structure(pattern),
        table=table,
        priority=constant_priority_fn(1.0) if priority is None else priority,
        conditions=conditions,
    )
