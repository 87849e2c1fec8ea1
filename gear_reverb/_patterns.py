"""Checked configs of a StructuredWriter, in the terms that the core and PatternDataset share.

A pattern takes steps from the end: step 1 back is the newest one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gear_reverb.cc import patterns_pb2


class Node(NamedTuple):
    """A column of an item: `count` steps of a source column, `step` apart, oldest first.

    Attributes:
      column: Flat index of the source column.
      first: How many steps back the oldest one is.
      squeeze: Whether the single step has no time axis.
    """

    column: int
    first: int
    count: int
    step: int
    squeeze: bool


class Condition(NamedTuple):
    """`left compare value`, or its inverse.

    Attributes:
      left: "step_index", "steps_since_applied", "buffer_length" or "flat_source_index".
      column: Flat index of the source column, of "flat_source_index".
      compare: "eq", "ge" or "mod_eq": `left % modulus == value`, truncating as C++ does.
    """

    left: str
    column: int
    compare: str
    value: int
    modulus: int
    inverse: bool


class Priority(NamedTuple):
    """Attributes:
    kind: "constant_fn", "td_error", or "missing".
    value: The constant, or the weight of the maximum.
    column: Flat index of the TD error's source column.
    """

    kind: str
    value: float
    column: int


class Config(NamedTuple):
    """One kind of item. The order of fields is the core's (native/bindings/structured_writer.cc).

    Attributes:
      at_end_of_episode: Whether the config is applied when the episode ends, rather than at steps.
    """

    table: str
    nodes: list[Node]
    conditions: list[Condition]
    at_end_of_episode: bool
    priority: Priority


def compile_configs(configs: Sequence[patterns_pb2.StructuredWriterConfig]) -> list[Config]:
    """The configs in plain terms.

    Raises:
      ValueError: If there is none, or one is invalid; says which.
    """
    if not configs:
        raise ValueError("At least one config must be provided.")
    # From bytes, so that configs of another library with these messages are understood too.
    messages = [
        patterns_pb2.StructuredWriterConfig.FromString(config.SerializeToString())
        for config in configs
    ]
    return [_compile(message, position) for position, message in enumerate(messages)]


def _compile(config: patterns_pb2.StructuredWriterConfig, position: int) -> Config:
    try:
        if not config.flat:
            raise ValueError("`flat` must not be empty.")
        nodes = [_compile_node(node) for node in config.flat]
        if not config.table:
            raise ValueError("`table` must not be empty.")
        conditions = [_compile_condition(condition) for condition in config.conditions]
    except ValueError as error:
        raise ValueError(f"Invalid configuration at position {position}: {error}") from None
    return Config(
        table=config.table,
        nodes=nodes,
        conditions=[condition for condition in conditions if condition is not None],
        at_end_of_episode=None in conditions,
        priority=_compile_priority(config.priority),
    )


def _compile_node(node: patterns_pb2.PatternNode) -> Node:
    has_start = node.HasField("start")
    if node.flat_source_index < 0:
        raise ValueError(f"`flat_source_index` must be >= 0 but got {node.flat_source_index}.")
    if not has_start and not node.HasField("stop"):
        raise ValueError("At least one of `start` and `stop` must be specified.")
    if has_start and node.start >= 0:
        raise ValueError(f"`start` must be < 0 but got {node.start}.")
    if node.stop > 0:
        raise ValueError(f"`stop` must be <= 0 but got {node.stop}.")
    if not has_start and node.stop == 0:
        raise ValueError("`stop` must be < 0 when `start` isn't set but got 0.")
    if has_start and node.stop <= node.start:
        raise ValueError(
            f"`stop` ({node.stop}) must be > `start` ({node.start}) when both are specified."
        )
    if node.HasField("step"):
        if not has_start:
            raise ValueError("`step` must only be set when `start` is set.")
        if node.step <= 0:
            raise ValueError(f"`step` must be > 0 but got {node.step}.")
    if not has_start:
        return Node(node.flat_source_index, -node.stop, 1, 1, True)
    steps = range(node.start, node.stop, node.step or 1)
    return Node(node.flat_source_index, -node.start, len(steps), steps.step, False)


def _compile_condition(condition: patterns_pb2.Condition) -> Condition | None:
    """None for the condition that the episode ends."""
    left, compare = condition.WhichOneof("left"), condition.WhichOneof("cmp")
    if left is None:
        raise ValueError("Conditions must specify a value for `left`.")
    if compare is None:
        raise ValueError("Conditions must specify a value for `cmp`.")
    if left == "is_end_episode":
        if compare != "eq" or condition.eq != 1 or condition.inverse:
            raise ValueError("Condition must use `eq=1` when using `is_end_episode`.")
        return None
    column = condition.flat_source_index if left == "flat_source_index" else 0
    if column < 0:
        raise ValueError(f"`flat_source_index` must be >= 0 but got {column}.")
    if compare != "mod_eq":
        value = getattr(condition, compare)
        return Condition(left, column, compare, value, 1, condition.inverse)
    if condition.mod_eq.mod <= 0:
        raise ValueError(f"`mod_eq.mod` must be > 0 but got {condition.mod_eq.mod}.")
    if condition.mod_eq.eq < 0:
        raise ValueError(f"`mod_eq.eq` must be >= 0 but got {condition.mod_eq.eq}.")
    return Condition(
        left, column, compare, condition.mod_eq.eq, condition.mod_eq.mod, condition.inverse
    )


def _compile_priority(priority: patterns_pb2.Priority) -> Priority:
    kind = priority.WhichOneof("priority_fn")
    if kind == "constant_fn":
        return Priority(kind, priority.constant_fn.value, 0)
    if kind == "td_error":
        fn = priority.td_error
        return Priority(kind, fn.max_priority_weight, fn.flat_source_index)
    return Priority("missing", 0.0, 0)
