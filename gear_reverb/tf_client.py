"""A client whose calls are TensorFlow operations: eager, in `tf.function`, and in v1 sessions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from gear_reverb import client as client_lib
from gear_reverb import errors, replay_sample


class TFClient:
    """Access to one server from TensorFlow. May be used by several threads.

    Calls from a graph run in this process, so graphs with them cannot be exported. Failed calls
    raise `tf.errors.OpError`s: `InvalidArgumentError` for what the server refuses.
    """

    def __init__(
        self, server_address: str, shared_name: str | None = None, name: str = "reverb"
    ) -> None:
        """Does not connect yet: the first call does.

        Args:
          server_address: "host:port".
          shared_name: Accepted as Reverb has it; clients share what there is to share anyway.
          name: Prefix of the operations' names.
        """
        del shared_name
        self._name = name
        self._server_address = server_address
        self._client = client_lib.Client(server_address)

    @property
    def server_address(self) -> str:
        """The address that the client was made with."""
        return self._server_address

    def sample(
        self, table: str, data_dtypes: Any, name: str | None = None
    ) -> replay_sample.ReplaySample:
        """Samples one item and returns its first step; waits while the rate limiter says so.

        Args:
          table: Name of the table.
          data_dtypes: Nest of the data's dtypes.
          name: Name of the operation.

        Returns:
          A `ReplaySample` of tensors with the structure of `data_dtypes`. In a graph, shapes are
          unknown.
        """
        dtypes = [tf.as_dtype(dtype) for dtype in tree.flatten(data_dtypes)]
        info_dtypes = replay_sample.SampleInfo.tf_dtypes()

        def sample(table):
            return self._sample(table, dtypes)

        values = self._call(
            "sample",
            sample,
            [tf.convert_to_tensor(table, tf.string)],
            [*info_dtypes, *dtypes],
            name,
        )
        count = len(info_dtypes)
        return replay_sample.ReplaySample(
            info=replay_sample.SampleInfo(*values[:count]),
            data=tree.unflatten_as(data_dtypes, values[count:]),
        )

    def insert(
        self,
        data: Sequence[tf.Tensor],
        tables: tf.Tensor,
        priorities: tf.Tensor,
        name: str | None = None,
    ) -> tf.Operation | None:
        """Inserts one item of a single step into one or several tables, and waits until it is in.

        Args:
          data: Tensors of the step.
          tables: Names of the tables, string, shape `[n]`.
          priorities: The item's priorities in these tables, float64, shape `[n]`.
          name: Name of the operation.

        Returns:
          The operation in a graph, else None.

        Raises:
          ValueError: If `tables` or `priorities` has another dtype or rank, or they differ in
            shape.
        """
        if tables.dtype != tf.string or tables.shape.rank != 1:
            raise ValueError("tables must be a string tensor of rank 1")
        if priorities.dtype != tf.float64 or priorities.shape.rank != 1:
            raise ValueError("priorities must be a float64 tensor of rank 1")
        if not tables.shape.is_compatible_with(priorities.shape):
            raise ValueError("priorities and tables must have the same shape")
        tensors = [tables, priorities, *(tf.convert_to_tensor(tensor) for tensor in data)]
        return self._call("insert", self._insert, tensors, [], name)

    def update_priorities(
        self, table: str, keys: tf.Tensor, priorities: tf.Tensor, name: str | None = None
    ) -> tf.Operation | None:
        """Updates priorities of items. Unknown keys are ignored.

        Args:
          table: Name of the table.
          keys: uint64, shape `[n]`.
          priorities: float64, shape `[n]`.
          name: Name of the operation.

        Returns:
          The operation in a graph, else None.
        """
        tensors = [
            tf.convert_to_tensor(table, tf.string),
            tf.convert_to_tensor(keys, tf.uint64),
            tf.convert_to_tensor(priorities, tf.float64),
        ]
        return self._call("update_priorities", self._update_priorities, tensors, [], name)

    def _call(
        self, what: str, function: Any, tensors: list[tf.Tensor], dtypes: list, name: str | None
    ) -> Any:
        """Calls `function` with arrays: now, or as an operation of the graph being built."""
        if tf.executing_eagerly():
            try:
                values = function(*(tensor.numpy() for tensor in tensors))
            except (TypeError, ValueError) as error:
                raise tf.errors.InvalidArgumentError(None, None, str(error)) from error
            except errors.DeadlineExceededError as error:
                raise tf.errors.DeadlineExceededError(None, None, str(error)) from error
            except errors.ReverbError as error:
                raise _op_error(error) from error
            return [tf.constant(value, dtype) for value, dtype in zip(values, dtypes)] or None
        return tf.numpy_function(function, tensors, dtypes, name=name or f"{self._name}_{what}")

    def _sample(self, table: bytes, dtypes: Sequence[tf.DType]) -> list[np.ndarray]:
        sampler = self._client._client.NewSampler(_text(table), 1, 1, -1)
        try:
            values, _ = sampler.GetNextTimestep()
        finally:
            sampler.Close()
        count = len(replay_sample.SampleInfo._fields)
        info_dtypes = (np.uint64, np.float64, np.int64, np.float64, np.int32)
        info = [np.array(value, dtype) for value, dtype in zip(values, info_dtypes)]
        data = values[count:]
        if len(data) != len(dtypes):
            raise ValueError(
                f"Inconsistent number of tensors received from table '{_text(table)}'. "
                f"Specification has {len(dtypes)} tensors, but data coming from the table shows "
                f"{len(data)} tensors."
            )
        for i, (array, dtype) in enumerate(zip(data, dtypes)):
            if array.dtype != dtype.as_numpy_dtype:
                raise ValueError(
                    f"Received incompatible tensor at flattened index {i} from table "
                    f"'{_text(table)}'. Specification has dtype {dtype.name}. Tensor has dtype "
                    f"{tf.as_dtype(array.dtype).name} and shape {list(array.shape)}."
                )
        return [*info, *data]

    def _insert(self, tables: np.ndarray, priorities: np.ndarray, *data: np.ndarray) -> tuple:
        if tables.size:
            with self._client.writer(max_sequence_length=1) as writer:
                writer.append(list(data))
                for table, priority in zip(tables, priorities):
                    writer.create_item(_text(table), 1, float(priority))
        return ()

    def _update_priorities(self, table: bytes, keys: np.ndarray, priorities: np.ndarray) -> tuple:
        if np.ndim(keys) != 1 or np.ndim(priorities) != 1:
            raise ValueError("Tensors `keys` and `priorities` must be of rank 1.")
        if keys.shape != priorities.shape:
            raise ValueError(
                "Tensors `keys` and `priorities` do not match in shape "
                f"({list(keys.shape)} vs. {list(priorities.shape)})"
            )
        self._client.mutate_priorities(_text(table), updates=(keys, priorities))
        return ()


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _op_error(error: errors.ReverbError) -> tf.errors.OpError:
    # The core's exceptions keep of the status only its text.
    if "was not found" in str(error):
        return tf.errors.NotFoundError(None, None, str(error))
    return tf.errors.UnknownError(None, None, str(error))
