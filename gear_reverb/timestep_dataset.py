"""Steps of a table's items as a `tf.data.Dataset`."""

from gear_reverb import _tf_dataset


class TimestepDataset(_tf_dataset.SampledDataset):
    """Samples items and gives out their steps one by one, each with its item's info.

    Elements are `ReplaySample`s, info scalar, data of shape `[...]`. Nothing marks where an item
    ends: where that matters, let all items have T steps and use `batch(T)`, or `TrajectoryDataset`.

    Lists in the structure of `dtypes` and `shapes` become tuples, as tf.data takes lists for
    tensors.
    """

    _timesteps = True

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        """As `tf.data.Dataset.batch`, cut from blocks of steps where sizes are known now.

        `num_parallel_calls` and `deterministic` have no effect then: batches come in order.
        """
        if _tf_dataset.is_size(batch_size) and isinstance(drop_remainder, bool):
            return _tf_dataset.rebatched(self, int(batch_size), drop_remainder)
        return super().batch(batch_size, drop_remainder, num_parallel_calls, deterministic, name)
