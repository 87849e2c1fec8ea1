"""Whole items of a table as a `tf.data.Dataset`."""

from gear_reverb import _tf_dataset


class TrajectoryDataset(_tf_dataset.SampledDataset):
    """Samples items: elements are `ReplaySample`s, the info scalar, the data of shape `[T, ...]`.

    Sampling starts with the first element that is asked for. `batch` and `padded_batch` gather
    whole batches outside of TensorFlow, so call them on this dataset itself, before `map` and the
    like.

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
        if _tf_dataset.is_size(batch_size) and isinstance(drop_remainder, bool):
            return _tf_dataset.batched(self, int(batch_size), drop_remainder)
        return super().batch(batch_size, drop_remainder, num_parallel_calls, deterministic, name)

    def padded_batch(
        self,
        batch_size,
        padded_shapes=None,
        padding_values=None,
        drop_remainder=False,
        name=None,
    ):
        """As `tf.data.Dataset.padded_batch`, gathered outside of TensorFlow where that can be.

        That is: with the default shapes and values, if only the items' numbers of steps are left
        open by `shapes`.
        """
        sizes = _tf_dataset.is_size(batch_size) and isinstance(drop_remainder, bool)
        defaults = padded_shapes is None and padding_values is None
        if sizes and defaults and _tf_dataset.can_pad(self):
            return _tf_dataset.batched(self, int(batch_size), drop_remainder, pad=True)
        return super().padded_batch(
            batch_size, padded_shapes, padding_values, drop_remainder, name=name
        )
