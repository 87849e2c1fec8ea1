"""Whole items of a table as a `tf.data.Dataset`."""

from typing import Any

import tensorflow as tf

from gear_reverb import _tf_dataset


class TrajectoryDataset(_tf_dataset.SampledDataset):
    """Samples items: elements are `ReplaySample`s, the info scalar, the data of shape `[T, ...]`.

    Sampling starts with the first element that is asked for. `batch` gathers whole batches outside
    of TensorFlow, so call it on this dataset itself, before `map` and the like.

    Items cross into TensorFlow in runs of equal shapes, so it is fastest where all have one length.

    Lists in the structure of `dtypes` and `shapes` become tuples, as tf.data takes lists for
    tensors.
    """

    _timesteps = False

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        """As `tf.data.Dataset.batch`, gathered outside of TensorFlow where sizes are known now.

        `num_parallel_calls` and `deterministic` have no effect then: batches come in order.
        """
        if _is_size(batch_size) and isinstance(drop_remainder, bool):
            return _tf_dataset.batched(self, int(batch_size), drop_remainder)
        return super().batch(batch_size, drop_remainder, num_parallel_calls, deterministic, name)


def _is_size(value: Any) -> bool:
    return not isinstance(value, (bool, tf.Tensor)) and hasattr(value, "__index__") and value > 0
