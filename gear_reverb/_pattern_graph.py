"""`PatternDataset` as a graph of TensorFlow's own ops; no Python runs per step or item.

A `scan` over the steps keeps the last ones in rings and says for every step which configs apply
(_pattern_matcher.py). Their items are then gathered from the rings.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from gear_reverb import _pattern_signature, _patterns
from gear_reverb._pattern_matcher import Matcher
from gear_reverb.cc import patterns_pb2

_as_is = tf.autograph.experimental.do_not_convert


class PatternDataset(tf.data.Dataset):
    """The items that a `StructuredWriter` would make of a dataset of steps, in the same order.

    Works in eager and in graph mode. Priorities and table names do not count. A config is applied
    only once there are as many steps as its patterns and those of all configs before it reach
    back, unless it has a condition on the buffer's length that is as strict.
    """

    def __init__(
        self,
        input_dataset: tf.data.Dataset,
        configs: Sequence[patterns_pb2.StructuredWriterConfig],
        respect_episode_boundaries: bool,
        is_end_of_episode: Callable[[Any], bool],
    ) -> None:
        """Applies the configs to every step, and at the end of every episode.

        Args:
          input_dataset: Dataset of steps, each a nest of tensors.
          configs: What items to make, and when; see `gear_reverb.structured`. All of one
            structure, so that the elements are alike. Lists in it become tuples.
          respect_episode_boundaries: Whether items consist of steps of one episode only.
          is_end_of_episode: Tells of a step, as a scalar bool tensor, whether it is the last one of
            its episode. Called as `tf.data.Dataset.map` calls functions.

        Raises:
          ValueError: If a config is invalid, the configs do not fit together, or
            `is_end_of_episode` returns anything else.
          IndexError: If a pattern refers to a column that steps do not have.
        """
        compiled = _patterns.compile_configs(configs)
        specs = _pattern_signature.infer_specs(configs, input_dataset.element_spec)
        matcher = Matcher(compiled, tree.flatten(input_dataset.element_spec))
        steps = _with_end(input_dataset, is_end_of_episode)
        items = _Items(matcher, _without_lists(specs)).of(steps, respect_episode_boundaries)
        self._input_dataset = input_dataset
        self._element_spec = items.element_spec
        super().__init__(items._variant_tensor)

    def _inputs(self) -> list:
        return [self._input_dataset]

    @property
    def element_spec(self) -> Any:
        """Nest of `tf.TensorSpec` in the structure of the patterns."""
        return self._element_spec


PatternDataset.__module__ = "gear_reverb.pattern_dataset"


def _with_end(steps: tf.data.Dataset, is_end_of_episode: Callable) -> tf.data.Dataset:
    """Dataset of pairs: the step, and whether its episode ends."""
    is_tuple = type(steps.element_spec) is tuple  # Such elements come as several arguments.

    def pair(*step: Any) -> tuple:
        # AutoGraph converts this function, and with it the user's.
        return (step if is_tuple else step[0]), tf.convert_to_tensor(is_end_of_episode(*step))

    pairs = steps.map(pair)
    spec = pairs.element_spec[1]
    if spec.dtype != tf.bool or not spec.shape.is_compatible_with([]):
        raise ValueError(
            "Invalid `is_end_of_episode`. `is_end_of_episode` must return `bool`, but its return "
            f"type is {spec}."
        )
    return pairs


class _Items:
    """Makes the items that are due at a step."""

    def __init__(self, matcher: Matcher, specs: Any) -> None:
        self._matcher = matcher
        self._specs = specs

    def of(self, steps: tf.data.Dataset, respect_episode_boundaries: bool) -> tf.data.Dataset:
        """The items that `steps`, with their ends of episodes, make."""
        if not self._matcher.configs:
            return self._empty()
        matched = steps.scan(
            self._matcher.initial_state(), self._matcher.step(respect_episode_boundaries)
        )
        has_one = len(self._matcher.configs) == 1

        @_as_is
        def is_due(step: tf.Tensor, rings: tuple, applies: tf.Tensor) -> tf.Tensor:
            return applies[0] if has_one else tf.reduce_any(applies)

        @_as_is
        def items(step: tf.Tensor, rings: tuple, applies: tf.Tensor) -> tf.data.Dataset:
            due = tf.data.Dataset.from_tensor_slices(tf.where(applies)[:, 0])
            return due.map(_as_is(lambda config: self._choose(config, step, rings)))

        @_as_is
        def only_item(step: tf.Tensor, rings: tuple, applies: tf.Tensor) -> Any:
            return self._pack(self._columns(0, step, rings))

        due = matched.filter(is_due)
        return due.map(only_item) if has_one else due.flat_map(items)

    def _choose(self, config: tf.Tensor, step: tf.Tensor, rings: tuple) -> Any:
        makers = [
            lambda index=index: self._columns(index, step, rings)
            for index in range(len(self._matcher.configs))
        ]
        return self._pack(tf.switch_case(tf.cast(config, tf.int32), makers))

    def _columns(self, index: int, step: tf.Tensor, rings: tuple) -> list:
        reaches, columns = self._matcher.reaches, []
        places_of: dict[tuple, tf.Tensor] = {}
        for node in self._matcher.configs[index].nodes:
            reach = reaches[node.column]
            key = (node.first, node.count, node.step, reach)
            if key not in places_of:
                back = np.arange(node.count, dtype=np.int64) * node.step - (node.first - 1)
                places_of[key] = tf.cast((step + back) % reach, tf.int32)
            ring = rings[list(reaches).index(node.column)]
            columns.append(self._gather(node, ring, places_of[key]))
        return columns

    def _gather(self, node: _patterns.Node, ring: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        how = {
            "input_handle": ring,
            "element_shape": self._matcher.element_shape(node.column),
            "element_dtype": self._matcher.columns[node.column].dtype,
        }
        if node.squeeze:
            return tf.raw_ops.TensorListGetItem(index=places[0], **how)
        return tf.raw_ops.TensorListGather(indices=places, **how)

    def _pack(self, columns: Any) -> Any:
        columns = list(columns) if isinstance(columns, (list, tuple)) else [columns]
        shaped = [
            tf.ensure_shape(column, spec.shape)
            for column, spec in zip(columns, tree.flatten(self._specs))
        ]
        return tree.unflatten_as(self._specs, shaped)

    def _empty(self) -> tf.data.Dataset:
        def never() -> Any:
            return tree.map_structure(
                lambda spec: tf.zeros([size or 0 for size in spec.shape], spec.dtype), self._specs
            )

        return tf.data.Dataset.from_tensors(never()).take(0)


def _without_lists(nest: Any) -> Any:
    """The nest with tuples for lists, since `tf.data` takes lists for tensors."""
    if isinstance(nest, dict):
        return {key: _without_lists(child) for key, child in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*map(_without_lists, nest))
    if isinstance(nest, (list, tuple)):
        return tuple(map(_without_lists, nest))
    return nest
