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
