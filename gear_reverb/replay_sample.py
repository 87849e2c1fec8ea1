"""What sampling returns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class SampleInfo(NamedTuple):
    """Where a sample comes from; in batches, every field has a leading batch axis.

    Attributes:
      key: Unsigned 64-bit key of the item.
      probability: Probability with which the sampler chose the item at that time.
      table_size: Items in the table at that time.
      priority: Priority of the item at that time.
      times_sampled: How often the item has been sampled, this time included.
    """

    key: Any
    probability: Any
    table_size: Any
    priority: Any
    times_sampled: Any

    @classmethod
    def zeros(cls) -> "SampleInfo":
        """All fields zero, as Python numbers."""
        return cls(key=0, probability=0.0, table_size=0, priority=0.0, times_sampled=0)

    @classmethod
    def tf_dtypes(cls) -> "SampleInfo":
        """The fields' `tf.DType`s; needs TensorFlow."""
        import tensorflow as tf

        return cls(tf.uint64, tf.float64, tf.int64, tf.float64, tf.int32)

    @classmethod
    def tf_shapes(cls) -> "SampleInfo":
        """The fields' `tf.TensorShape`s, all scalar; needs TensorFlow."""
        import tensorflow as tf

        return cls(*(tf.TensorShape([]) for _ in cls._fields))


class ReplaySample(NamedTuple):
    """One sampled item, or one step of it.

    Attributes:
      info: Where the data comes from.
      data: Flat list of columns, or the nest of the table's signature. Columns of an item have
        shape `[steps, ...]`, those of a step `[...]`.
    """

    info: SampleInfo
    data: Sequence[np.ndarray] | Any


BATCH_EXTRAS = ("lengths", "mask", "cu_seqlens", "weights")
"""What a `ReplayBatch` has besides its fields."""


class ReplayBatch(ReplaySample):
    """Items sampled together: a `ReplaySample` whose arrays have a leading batch axis.

    The fields of `info` have shape `[B]`. A leaf of `data` has shape `[B, T, ...]`, `[B, ...]`
    where items have a single step without an axis for it (squeezed), or, packed,
    `[sum of T, ...]`.

    `lengths`, `mask` and `cu_seqlens` are one array each where the columns of every item are
    equally long; otherwise they have the structure of `data`, with None at squeezed columns. They
    are not fields of the tuple: what `_replace` or `tree.map_structure` makes of a batch lacks
    them.

    Attributes:
      lengths: Steps of each item, int32 `[B]`; None for `ragged="error"`.
      mask: Whether a step is an item's and not padding, bool `[B, T]`; None but for `"pad"`.
      cu_seqlens: Where each item starts, and the end, int32 `[B + 1]`; None but for `"pack"`.
      weights: Importance weights, float32 `[B]`, the largest of them 1; None without `beta`.
    """

    lengths: Any = None
    mask: Any = None
    cu_seqlens: Any = None
    weights: Any = None
