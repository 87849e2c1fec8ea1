"""What the two datasets share: a `tf.data.Dataset` whose elements come from a table.

Blocks of samples cross into tf.data by one call from TensorFlow to Python each and are taken apart
by tf.data itself, so no compiled op is needed, and any TensorFlow from 2.15 on will do. Arrays
cross without being copied.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from gear_reverb import _dtypes, _sample_blocks, _tf_generator, replay_sample
from gear_reverb import client as client_lib


class SampledDataset(tf.compat.v1.data.Dataset):
    """Common base of `TrajectoryDataset` and `TimestepDataset`, whose arguments it takes."""

    _timesteps: bool

    def __init__(
        self,
        server_address: str | tf.Tensor,
        table: str | tf.Tensor,
        dtypes: Any,
        shapes: Any,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        max_samples: int = -1,
    ) -> None:
        """A dataset of one table's items, whole or by steps.

        Args:
          server_address: "host:port"; a scalar string tensor will do.
          table: Name of the table; a scalar string tensor will do.
          dtypes: Nest of the data's dtypes.
          shapes: Nest of the data's shapes, `tf.TensorShape`s, axis of steps included where
            elements are whole items.
          max_in_flight_samples_per_worker: Items that are sampled ahead of the consumer. More is
            faster; less keeps samples and priorities fresh. Two or three batches are a good start.
          num_workers_per_iterator: Multiplies what is sampled ahead; -1 for 1. Samples come over
            one stream, in the order of sampling, whatever the number.
          max_samples_per_stream: Samples after which a new stream is opened; -1 for no limit.
          rate_limiter_timeout_ms: The sequence ends when the table's rate limiter has not let a
            sample through for so long; -1 to wait for ever.
          max_samples: Items after which the sequence ends; -1 for no end.

        Raises:
          TypeError: If the address or the table is no text.
          ValueError: If `dtypes` and `shapes` differ in structure, or a number is out of range.
        """
        _check_text(server_address=server_address, table=table)
        tree.assert_same_structure(dtypes, shapes, check_types=False)
        _check_positive(max_in_flight_samples_per_worker=max_in_flight_samples_per_worker)
        _check_positive_or_none(num_workers_per_iterator=num_workers_per_iterator)
        _check_positive_or_none(max_samples_per_stream=max_samples_per_stream)
        if rate_limiter_timeout_ms < -1:
            raise ValueError(
                f"rate_limiter_timeout_ms ({rate_limiter_timeout_ms:d}) must be an integer >= -1"
            )
        _check_positive_or_none(max_samples=max_samples)

        data = tree.map_structure(tf.TensorSpec, _as_tuples(shapes), _as_tuples(dtypes))
        info = tree.map_structure(
            tf.TensorSpec,
            replay_sample.SampleInfo.tf_shapes(),
            replay_sample.SampleInfo.tf_dtypes(),
        )
        self._server_address = server_address
        self._table = table
        self._spec = replay_sample.ReplaySample(info=info, data=data)
        columns = [_column(spec) for spec in tree.flatten(data)]
        self._sampling = _sample_blocks.Options(
            columns=columns,
            timesteps=self._timesteps,
            max_in_flight=int(max_in_flight_samples_per_worker)
            * max(1, int(num_workers_per_iterator)),
            max_samples_per_stream=int(max_samples_per_stream),
            rate_limiter_timeout_ms=int(rate_limiter_timeout_ms),
            max_samples=int(max_samples),
            ragged=() if self._timesteps else _ragged(columns),
        )
        blocks = self._blocks(self._sampling)
        if self._sampling.ragged:
            self._elements = blocks.flat_map(_split(self._sampling))
        else:
            self._elements = blocks.unbatch()
        super().__init__()

    @classmethod
    def from_table_signature(
        cls,
        server_address: str,
        table: str,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        get_signature_timeout_secs: int | None = None,
        max_samples: int = -1,
    ) -> "SampledDataset":
        """A dataset with the dtypes and shapes of the table's signature.

        Args:
          server_address: "host:port".
          table: Name of the table.
          max_in_flight_samples_per_worker: As of the constructor, like all that follow but one.
          num_workers_per_iterator: See there.
          max_samples_per_stream: See there.
          rate_limiter_timeout_ms: See there.
          get_signature_timeout_secs: Longest time to wait for the server's answer now; None for no
            limit.
          max_samples: See the constructor.

        Raises:
          ValueError: If there is no such table or it has no signature, and as the constructor.
          DeadlineExceededError: If the server does not answer in time.
        """
        return cls._from_table_signature(
            server_address,
            table,
            get_signature_timeout_secs,
            max_in_flight_samples_per_worker=max_in_flight_samples_per_worker,
            num_workers_per_iterator=num_workers_per_iterator,
            max_samples_per_stream=max_samples_per_stream,
            rate_limiter_timeout_ms=rate_limiter_timeout_ms,
            max_samples=max_samples,
        )

    @classmethod
    def _from_table_signature(
        cls, server_address: str, table: str, get_signature_timeout_secs: int | None, **options: Any
    ):
        info = client_lib.Client(server_address).server_info(get_signature_timeout_secs)
        if table not in info:
            raise ValueError(
                f"Server at {server_address} does not contain any table named {table}. "
                f"Found: {', '.join(sorted(info))}."
            )
        signature = info[table].signature
        if not signature:
            raise ValueError(f"Table {table} at {server_address} does not have a signature.")
        return cls(
            server_address=server_address,
            table=table,
            dtypes=tree.map_structure(
                lambda spec: tf.as_dtype(_dtypes.as_number(spec.dtype)), signature
            ),
            shapes=tree.map_structure(lambda spec: tf.TensorShape(spec.shape), signature),
            **options,
        )

    @tf.autograph.experimental.do_not_convert
    def _blocks(self, options: _sample_blocks.Options) -> tf.data.Dataset:
        """Blocks as flat tuples of tensors `[rows, ...]`, empty ones among them."""

        def generate(server_address: bytes, table: bytes):
            return _sample_blocks.blocks(server_address.decode(), table.decode(), options)

        return _tf_generator.GeneratorDataset(
            generate,
            (self._server_address, self._table),
            _block_signature(tree.flatten(self._spec), options),
        )

    def _as_variant_tensor(self) -> tf.Tensor:
        return self._elements._variant_tensor

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        """A `ReplaySample` of `tf.TensorSpec`s."""
        return self._spec


class BatchedDataset(tf.compat.v1.data.Dataset):
    """Batches that are not put together of single elements: what the datasets' `batch` returns."""

    def __init__(self, batches: tf.data.Dataset, element_spec: Any) -> None:
        self._batches = batches
        self._spec = element_spec
        super().__init__()

    def _as_variant_tensor(self) -> tf.Tensor:
        return self._batches._variant_tensor

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        """That of the items, with the batch's axis first."""
        return self._spec


def batched(
    dataset: SampledDataset, batch_size: int, drop_remainder: bool, pad: bool = False
) -> BatchedDataset:
    """Same elements as those of `dataset.batch`, or of `dataset.padded_batch`."""
    ahead = dataset._sampling.max_in_flight
    prefetched = ahead >= 2 * batch_size
    options = dataclasses.replace(
        dataset._sampling,
        batch_size=batch_size,
        drop_remainder=drop_remainder,
        pad=pad,
        ragged=(),
        # The batch that tf.data has ready counts as in flight.
        max_in_flight=ahead - batch_size if prefetched else ahead,
    )
    batches = dataset._blocks(options)
    if prefetched:
        batches = batches.prefetch(1)
    return BatchedDataset(_without_empty(batches), _batch_spec(dataset, batch_size, drop_remainder))


def rebatched(dataset: SampledDataset, batch_size: int, drop_remainder: bool) -> BatchedDataset:
    """Same elements as those of `dataset.batch`, cut from blocks as they come."""
    blocks = _without_empty(dataset._blocks(dataset._sampling))
    batches = blocks.rebatch(batch_size, drop_remainder)
    return BatchedDataset(batches, _batch_spec(dataset, batch_size, drop_remainder))


def is_size(value: Any) -> bool:
    """Whether it is the size of a batch, known now."""
    return not isinstance(value, (bool, tf.Tensor)) and hasattr(value, "__index__") and value > 0


def can_pad(dataset: SampledDataset) -> bool:
    """Whether only the axis of steps can differ between items, as far as specs tell."""
    return all(
        column.shape is not None and None not in column.shape[1:]
        for column in dataset._sampling.columns
    )


def _batch_spec(dataset: SampledDataset, batch_size: int, drop_remainder: bool) -> Any:
    rows = batch_size if drop_remainder else None
    return tree.map_structure(lambda leaf: _with_rows(leaf, rows), dataset.element_spec)


@tf.autograph.experimental.do_not_convert
def _without_empty(blocks: tf.data.Dataset) -> tf.data.Dataset:
    """Blocks are empty while there is nothing."""
    return blocks.filter(lambda key, *_: tf.size(key) > 0)


def _check_text(**arguments: Any) -> None:
    for name, value in arguments.items():
        if not isinstance(value, (str, bytes, np.ndarray)) and not tf.is_tensor(value):
            raise TypeError(f"{name} must be a str or a string tensor, but is {value!r}")


def _check_positive(**arguments: int) -> None:
    for name, value in arguments.items():
        if value < 1:
            raise ValueError(f"{name} ({value:d}) must be a positive integer")


def _check_positive_or_none(**arguments: int) -> None:
    for name, value in arguments.items():
        if value < 1 and value != -1:
            raise ValueError(f"{name} ({value:d}) must be a positive integer or -1")


def _as_tuples(structure: Any) -> Any:
    """With tuples in place of lists, which tf.data takes for tensors."""

    def convert(node: Any) -> Any:
        return tuple(node) if isinstance(node, list) else None

    return tree.traverse(convert, structure, top_down=False)


def _column(spec: tf.TensorSpec) -> _sample_blocks.Column:
    shape = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    return _sample_blocks.Column(shape, np.dtype(spec.dtype.as_numpy_dtype))


def _with_rows(spec: tf.TensorSpec, rows: int | None = None) -> tf.TensorSpec:
    return tf.TensorSpec(tf.TensorShape([rows]).concatenate(spec.shape), spec.dtype)


def _ragged(columns: Sequence[_sample_blocks.Column]) -> tuple[int, ...]:
    """The columns whose number of steps is unknown; none if any shape is wholly unknown."""
    if any(column.shape is None for column in columns):
        return ()
    return tuple(i for i, column in enumerate(columns) if column.shape[:1] == (None,))


def _block_signature(
    specs: Sequence[tf.TensorSpec], options: _sample_blocks.Options
) -> tuple[tf.TensorSpec, ...]:
    first = len(specs) - len(options.columns)
    packed = {first + i for i in options.ragged}
    signature = [spec if i in packed else _with_rows(spec) for i, spec in enumerate(specs)]
    lengths = tf.TensorSpec([options.block_items], tf.int32)
    return (*signature, *[lengths] * len(options.ragged))


def _split(options: _sample_blocks.Options) -> Callable[..., tf.data.Dataset]:
    """Makes a dataset of items of a block with columns that are packed along the axis of steps.

    Where all items are equally long they become slices of one tensor, which is the fastest way;
    otherwise a list of tensors.
    """
    count, items = len(options.columns), options.block_items

    @tf.autograph.experimental.do_not_convert
    def split(*arrays: tf.Tensor) -> tf.data.Dataset:
        first = len(arrays) - count - len(options.ragged)
        lengths = dict(zip([first + i for i in options.ragged], arrays[first + count :]))
        # Neighbours that are alike together, which leaves the order as it is.
        groups = [
            (packed, list(group))
            for packed, group in itertools.groupby(range(first + count), lengths.__contains__)
        ]
        rows = tf.shape(arrays[0])[0]

        def stacked(i: int) -> tf.Tensor:
            value, steps = arrays[i], lengths[i][0]
            shape = tf.concat([[rows, steps], tf.shape(value)[1:]], axis=0)
            return tf.ensure_shape(tf.reshape(value, shape), [None, *value.shape])

        def as_slices() -> tf.data.Dataset:
            return tf.data.Dataset.from_tensor_slices(
                tuple(
                    tuple(stacked(i) if packed else arrays[i] for i in group)
                    for packed, group in groups
                )
            )

        def as_list(group: Sequence[int]) -> tf.data.Dataset:
            columns = [tf.split(arrays[i], lengths[i], num=items) for i in group]
            return tf.data.experimental.from_list(list(zip(*columns)))

        def as_lists() -> tf.data.Dataset:
            datasets = [
                as_list(group)
                if packed
                else tf.data.Dataset.from_tensor_slices(tuple(arrays[i] for i in group))
                for packed, group in groups
            ]
            return tf.data.Dataset.zip(tuple(datasets))

        equal = [tf.reduce_all(of_items[:rows] == of_items[0]) for of_items in lengths.values()]
        return tf.cond(tf.reduce_all(equal), as_slices, as_lists)

    return split
