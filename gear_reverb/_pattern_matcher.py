"""Which configs apply to each step of a dataset, and the steps that their items need.

For each column that patterns use, the last steps are kept in a ring: a list of tensors, which
TensorFlow passes on without copying the tensors.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf
import tree

from gear_reverb import _patterns

_logger = logging.getLogger(__name__)


class _State(NamedTuple):
    """What is known after some steps.

    Attributes:
      num_steps: Steps so far.
      episode_steps: Steps of this episode.
      buffer_length: Steps that patterns may reach back, at most the longest reach of all.
      since_applied: i64[configs].
      rings: Per column of `Matcher.reaches`, the last steps at `step % reach`.
    """

    num_steps: tf.Tensor
    episode_steps: tf.Tensor
    buffer_length: tf.Tensor
    since_applied: tf.Tensor
    rings: tuple


class Matcher:
    """Says which configs apply to a step.

    Attributes:
      configs: The configs in the order of their items within a step: those that are applied at
        steps before those that are applied at the end of the episode.
      reaches: By source column that patterns use, how many steps back they reach.
      columns: Specs of the steps' columns.
    """

    def __init__(self, configs: Sequence[_patterns.Config], columns: list) -> None:
        lengths = _buffer_lengths(configs)
        applicable = [
            (config, length)
            for config, length in zip(configs, lengths)
            if _can_hold(config.conditions, columns)
        ]
        applicable.sort(key=lambda pair: pair[0].at_end_of_episode)
        self.columns = columns
        self.configs = [config for config, _ in applicable]
        self.reaches: dict[int, int] = {}
        for config in configs:
            for node in config.nodes:
                self.reaches[node.column] = max(self.reaches.get(node.column, 0), node.first)
        self._longest_reach = max(self.reaches.values())
        # Conditions with equal left sides are compared at once, whatever their number.
        self._groups: dict[tuple, list[tuple[int, _patterns.Condition]]] = {}
        for index, (config, length) in enumerate(applicable):
            waits = _patterns.Condition("buffer_length", 0, "ge", length, 1, False)
            for condition in [*config.conditions, waits]:
                group = (condition.left, condition.column, condition.compare)
                self._groups.setdefault(group, []).append((index, condition))

    def initial_state(self) -> _State:
        zero = tf.constant(0, tf.int64)
        rings = tuple(
            tf.raw_ops.TensorListReserve(
                element_shape=self.element_shape(column),
                num_elements=reach,
                element_dtype=self.columns[column].dtype,
            )
            for column, reach in self.reaches.items()
        )
        return _State(zero, zero, zero, tf.zeros([len(self.configs)], tf.int64), rings)

    def element_shape(self, column: int) -> tf.Tensor:
        sizes = [-1 if size is None else size for size in self.columns[column].shape]
        return tf.constant(sizes, tf.int32, shape=[len(sizes)])

    def step(self, respect_episode_boundaries: bool) -> Callable:
        """The function for `scan`; puts out `(index of the step, rings, bool[configs])`."""

        @tf.autograph.experimental.do_not_convert
        def scan(state: _State, element: tuple) -> tuple[_State, tuple]:
            step, is_end = element
            values = tree.flatten(step)
            places = {
                reach: tf.cast(state.num_steps % reach, tf.int32)
                for reach in set(self.reaches.values())
            }
            rings = tuple(
                tf.raw_ops.TensorListSetItem(
                    input_handle=ring, index=places[reach], item=values[column]
                )
                for ring, (column, reach) in zip(state.rings, self.reaches.items())
            )
            length = tf.minimum(state.buffer_length + 1, self._longest_reach)
            since = state.since_applied + 1
            applies = self._applies(state.episode_steps, length, since, values, is_end)
            zero = tf.constant(0, tf.int64)
            after = _State(
                state.num_steps + 1,
                tf.where(is_end, zero, state.episode_steps + 1),
                tf.where(is_end, zero, length) if respect_episode_boundaries else length,
                tf.where(applies, zero, since),
                rings,
            )
            return after, (state.num_steps, rings, applies)

        return scan

    def _applies(
        self,
        step_index: tf.Tensor,
        buffer_length: tf.Tensor,
        since_applied: tf.Tensor,
        values: list,
        is_end: tf.Tensor,
    ) -> tf.Tensor:
        """bool[configs]."""
        count = len(self.configs)
        results, owners = [], []
        for (left, column, compare), group in self._groups.items():
            configs = [config for config, _ in group]
            conditions = [condition for _, condition in group]
            is_known = None
            if left == "step_index":
                value = step_index
            elif left == "buffer_length":
                value = buffer_length
            elif left == "flat_source_index":
                value, is_known = _integer(values[column])
            elif configs == list(range(count)):
                value = since_applied
            else:
                value = tf.gather(since_applied, configs)
            result = _compare(value, compare, conditions)
            results.append(result if is_known is None else result & is_known)
            owners += configs
        holds = tf.concat(results, 0) if len(results) > 1 else results[0]
        if owners != list(range(count)):
            failed = tf.math.unsorted_segment_sum(tf.cast(~holds, tf.int32), owners, count)
            holds = tf.equal(failed, 0)
        at_end = [config.at_end_of_episode for config in self.configs]
        return holds & (is_end | ~tf.constant(at_end)) if any(at_end) else holds


def _compare(
    value: tf.Tensor, compare: str, conditions: Sequence[_patterns.Condition]
) -> tf.Tensor:
    """bool[conditions]"""
    right = tf.constant([condition.value for condition in conditions], tf.int64)
    if compare == "ge":
        result = value >= right
    elif compare == "eq":
        result = tf.equal(value, right)
    else:
        modulus = tf.constant([condition.modulus for condition in conditions], tf.int64)
        result = tf.equal(tf.truncatemod(value, modulus), right)
    inverse = [condition.inverse for condition in conditions]
    return tf.not_equal(result, tf.constant(inverse)) if any(inverse) else result


def _buffer_lengths(configs: Sequence[_patterns.Config]) -> list[int]:
    """How many steps each config waits for.

    As in Reverb, that is what its patterns and those of all configs before it reach back, where
    the config itself has no condition on it.
    """
    lengths, history = [], 0
    for config in configs:
        reach = max(node.first for node in config.nodes)
        history = max(history, reach)
        has_condition = any(
            condition.left == "buffer_length"
            and condition.compare == "ge"
            and condition.value >= history
            for condition in config.conditions
        )
        lengths.append(reach if has_condition else history)
    return lengths


def _can_hold(conditions: Sequence[_patterns.Condition], columns: list) -> bool:
    """Whether all conditions on data are on integer or bool scalars."""
    for condition in conditions:
        if condition.left != "flat_source_index":
            continue
        if condition.column >= len(columns):
            return False
        spec = columns[condition.column]
        if not (spec.dtype.is_integer or spec.dtype.is_bool) or spec.shape.num_elements() not in (
            None,
            1,
        ):
            _logger.warning(
                "A condition compares column %d, which is no integer or bool scalar but %s: "
                "configs with such conditions are not applied.",
                condition.column,
                spec,
            )
            return False
    return True


def _integer(tensor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The only element, as int64; and whether there is just one."""
    if tensor.dtype == tf.uint64:
        tensor = tf.minimum(tensor, tf.constant(2**63 - 1, tf.uint64))
    flat = tf.reshape(tf.cast(tensor, tf.int64), [-1])
    return tf.concat([flat[:1], tf.zeros([1], tf.int64)], 0)[0], tf.size(flat) == 1
