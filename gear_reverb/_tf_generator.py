"""A `tf.data.Dataset` of what a Python generator yields.

`tf.data.Dataset.from_generator` without its checks of every array, which cost more than the arrays'
way into TensorFlow does. What generators yield here is known to fit.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class GeneratorDataset(tf.compat.v1.data.Dataset):
    """Flat tuples of tensors; every iterator has a generator of its own, which ends with it."""

    def __init__(
        self,
        generate: Callable[..., Iterator[Sequence[np.ndarray]]],
        args: Sequence[Any],
        signature: Sequence[tf.TensorSpec],
    ) -> None:
        """Calls `generate` with the values of `args` when an iterator wants its first element.

        Args:
          generate: What it yields must have the dtypes and shapes of `signature`.
          args: Scalar tensors, or what becomes one.
          signature: Of the elements, one spec for each tensor.
        """
        self._signature = tuple(signature)
        running: dict[int, Iterator[Sequence[np.ndarray]]] = {}
        numbers = itertools.count()

        def start(*values: Any) -> np.int64:
            number = next(numbers)
            running[number] = generate(*values)
            return np.int64(number)

        def step(number: np.int64) -> tuple[np.ndarray, ...]:
            return tuple(next(running[int(number)]))  # Its StopIteration ends the sequence.

        def end(number: np.int64) -> np.int64:
            running.pop(int(number), None)
            return np.int64(0)

        dtypes = [spec.dtype for spec in signature]
        tensors = [tf.convert_to_tensor(arg) for arg in args]

        @tf.autograph.experimental.do_not_convert
        def one(*args: tf.Tensor) -> tf.data.Dataset:
            number = tf.TensorSpec([], tf.int64)
            return _Raw(
                tf.raw_ops.GeneratorDataset(
                    init_func_other_args=list(args),
                    next_func_other_args=[],
                    finalize_func_other_args=[],
                    init_func=_traced(start, tf.int64, [tf.TensorSpec([], a.dtype) for a in args]),
                    next_func=_traced(step, dtypes, [number]),
                    finalize_func=_traced(end, tf.int64, [number]),
                    output_types=dtypes,
                    output_shapes=[spec.shape for spec in signature],
                ),
                self._signature,
            )

        # Within a function, as tf.data can only write down and optimise datasets without state.
        self._elements = tf.data.Dataset.from_tensors(tuple(tensors)).flat_map(one)
        super().__init__()

    def _as_variant_tensor(self) -> tf.Tensor:
        return self._elements._variant_tensor

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> tuple[tf.TensorSpec, ...]:
        """A flat tuple."""
        return self._signature


class _Raw(tf.compat.v1.data.Dataset):
    def __init__(self, variant: tf.Tensor, spec: Any) -> None:
        self._variant, self._spec = variant, spec
        super().__init__()

    def _as_variant_tensor(self) -> tf.Tensor:
        return self._variant

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        return self._spec


def _traced(call: Callable[..., Any], dtypes: Any, specs: Sequence[tf.TensorSpec]) -> Any:
    """A function of the graph that calls Python."""

    @tf.autograph.experimental.do_not_convert
    def traced(*args: tf.Tensor) -> Any:
        return tf.numpy_function(call, args, dtypes)

    return tf.function(traced, input_signature=specs, autograph=False).get_concrete_function()
