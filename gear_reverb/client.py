"""Clients: write to, sample from and administer the tables of a server."""

import math
import operator
import time
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from gear_reverb import errors, pybind, replay_sample, reverb_types
from gear_reverb._arguments import integer, number
from gear_reverb._array_calls import ArrayCalls, milliseconds
from gear_reverb._column_paths import paths_of, with_paths
from gear_reverb._writer import Writer
from gear_reverb.trajectory_writer import TrajectoryWriter

if TYPE_CHECKING:
    from gear_reverb import structured_writer

__all__ = ["Client", "Writer"]

_UNLIMITED_ITEMS = 1_000_000
_LEAST_PATIENCE = 1.0  # Seconds.
_NUM_INFO_FIELDS = len(replay_sample.SampleInfo._fields)


class Client(ArrayCalls):
    """Access to one server. May be used by several threads; pickles by address."""

    def __init__(self, server_address: str) -> None:
        """Does not connect yet: the first call does, and fails if there is no server.

        Args:
          server_address: "host:port".
        """
        self._server_address = server_address
        self._client = pybind.Client(server_address)
        self._batch_makers = {}

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self._server_address,)

    def __repr__(self) -> str:
        plane = self._client.known_data_plane()
        return f"Client, server_address={self._server_address}" + (
            f", data_plane={plane}" if plane else ""
        )

    @property
    def server_address(self) -> str:
        """The address that the client was made with."""
        return self._server_address

    @property
    def data_plane(self) -> str:
        """The way that data takes; connects if that is not known yet.

        "in-process" to a server of this process; "shared-memory" to one of this host and user;
        "grpc" otherwise. The environment variable `GEAR_REVERB_DATA_PLANE` forces one of them for
        the clients made while it is set (and "grpc" keeps servers from offering shared memory).

        Raises:
          ValueError: If the variable has another value.
          ReverbError: If the forced way cannot be had; the text tells why.
        """
        return self._client.data_plane()

    def insert(
        self, data: Any, priorities: dict[str, float], *, timeout: float | None = None
    ) -> None:
        """Inserts one item of a single step into one or several tables, and waits until it is in.

        Args:
          data: Nest of arrays; stored once.
          priorities: Priority of the item by name of the table.
          timeout: Longest time to wait for the server and the tables' rate limiters, in seconds.

        Raises:
          TypeError, ValueError: If `priorities` is empty or one is no finite number; nothing is
            inserted then. If a table is unknown, or `data` does not match its signature; tables
            before it may have got the item.
          DeadlineExceededError: If the time is up. The item may still be inserted.
        """
        if not priorities:
            raise ValueError("priorities must contain at least one item")
        for table, priority in priorities.items():  # All before anything is inserted.
            if not math.isfinite(number(f"priorities[{table!r}]", priority)):
                raise ValueError(
                    f"priorities[{table!r}] is {priority}: every priority must be finite"
                )
        timeout_ms = milliseconds(timeout)
        if timeout_ms is not None:
            self._insert_with_timeout(data, priorities, max(1, timeout_ms))
            return
        with self.writer(max_sequence_length=1) as writer:
            writer.append(data)
            for table, priority in priorities.items():
                writer.create_item(table=table, num_timesteps=1, priority=priority)

    def _insert_with_timeout(
        self, data: Any, priorities: dict[str, float], timeout_ms: int
    ) -> None:
        deadline = time.monotonic() + timeout_ms / 1000

        def left_ms() -> int:
            return max(1, math.ceil((deadline - time.monotonic()) * 1000))

        for table in priorities:
            self._client.FetchSignature(table, left_ms())
        # Without a `Writer` around it: that one would wait for the items again when it is closed.
        writer = self._client.NewWriter(1, 1, False, _UNLIMITED_ITEMS)
        with_paths(writer.Append, lambda: paths_of(data), tree.flatten(data))
        for table, priority in priorities.items():
            writer.CreateItem(table, 1, priority)
        writer.Flush(left_ms())
        writer.Close()

    def writer(
        self,
        max_sequence_length: int,
        delta_encoded: bool = False,
        chunk_length: int | None = None,
        max_in_flight_items: int | None = 25,
    ) -> Writer:
        """A writer of items that span up to `max_sequence_length` steps.

        Prefer `trajectory_writer`, whose items can combine columns freely.

        Args:
          max_sequence_length: Last steps that items can span.
          delta_encoded: Accepted as Reverb has it; it has no effect.
          chunk_length: Steps per chunk; by default at most 10.
          max_in_flight_items: Items sent and not confirmed, before creating one waits; None for
            any number.

        Raises:
          ValueError: If a number is below 1, or `chunk_length` above `max_sequence_length`.
        """
        max_sequence_length = integer("max_sequence_length", max_sequence_length)
        if max_sequence_length < 1:
            raise ValueError(
                f"max_sequence_length ({max_sequence_length}) must be a positive integer"
            )
        if chunk_length is None:
            chunk_length = min(10, max_sequence_length)
        chunk_length = integer("chunk_length", chunk_length)
        if not 1 <= chunk_length <= max_sequence_length:
            raise ValueError(
                f"chunk_length ({chunk_length}) must be a positive integer le to "
                f"max_sequence_length ({max_sequence_length})"
            )
        if max_in_flight_items is None:
            max_in_flight_items = _UNLIMITED_ITEMS
        max_in_flight_items = integer("max_in_flight_items", max_in_flight_items)
        if max_in_flight_items < 1:
            raise ValueError(
                f"max_in_flight_items ({max_in_flight_items}) must be a positive integer"
            )
        internal_writer = self._client.NewWriter(
            chunk_length, max_sequence_length, delta_encoded, max_in_flight_items
        )
        return Writer(
            internal_writer,
            options=f"chunk_length={chunk_length}, max_timesteps={max_sequence_length}, "
            f"delta_encoded={delta_encoded}, max_in_flight_items={max_in_flight_items}",
        )

    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
        timeout: float | None = None,
    ) -> Generator[list[replay_sample.ReplaySample] | replay_sample.ReplaySample, None, None]:
        """Samples items one after another; waits while the table's rate limiter says so.

        Args:
          table: Name of the table.
          num_samples: Items to sample.
          emit_timesteps: Whether to split items into steps.
          unpack_as_table_signature: Whether data has the structure of the table's signature; if
            not, or if the table has none, it is a flat list of columns.
          timeout: Longest time to wait for the rate limiter, or for a server that is away, per
            item, in seconds. A server that is there and silent is waited for five seconds more.

        Yields:
          Per item, a list of `ReplaySample`, one per step, with data of shape `[...]`; or one
          `ReplaySample` with data of shape `[steps, ...]`, if `emit_timesteps` is false.

        Raises:
          ValueError: If steps are asked for and the item's columns differ in length, or
            `num_samples` is 0.
          DeadlineExceededError: If the time is up.
        """
        signature = None
        if unpack_as_table_signature:
            signature = self._structure_of_table(table, timeout)
        timeout_ms = milliseconds(timeout)
        timeout_ms = -1 if timeout_ms is None else max(1, timeout_ms)
        sampler = self._client.NewSampler(table, num_samples, 1, timeout_ms)
        try:
            for _ in range(num_samples):
                if emit_timesteps:
                    sample, is_last = [], False
                    while not is_last:
                        values, is_last = sampler.GetNextTimestep()
                        sample.append(_as_sample(values, signature))
                    yield sample
                else:
                    yield _as_sample(sampler.GetNextTrajectory(), signature)
        finally:
            sampler.Close()

    def mutate_priorities(
        self,
        table: str,
        updates: Mapping[int, float] | tuple[Any, Any] | None = None,
        deletes: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Updates priorities of items, then deletes items. Unknown keys are ignored.

        Args:
          table: Name of the table.
          updates: New priorities by key, or a pair of arrays, keys and priorities, of equal
            length.
          deletes: Keys of items to delete; a list or an array.
          timeout: Longest time to wait for the server, in seconds.

        Raises:
          DeadlineExceededError: If the time is up. The changes may still be made.
          TypeError: If a key is no integer.
          ValueError: If a key is not in `[0, 2**64)`, a priority is not finite, or negative where
            it is a weight, or the arrays' lengths differ.
          RuntimeError: If there is no such table.
        """
        if updates is None:
            keys, priorities = (), ()
        elif isinstance(updates, tuple):
            keys, priorities = updates
        else:
            keys, priorities = list(updates.keys()), list(updates.values())
        self._client.MutatePriorities(
            table,
            _keys(keys),
            np.asarray(priorities, dtype=np.float64).reshape(-1),
            _keys(() if deletes is None else deletes),
            milliseconds(timeout),
        )

    def reset(self, table: str, *, timeout: float | None = None) -> None:
        """Removes all items of a table, and sets its rate limiter back to the start.

        Args:
          table: Name of the table.
          timeout: Longest time to wait for the server, in seconds.

        Raises:
          DeadlineExceededError: If the time is up. The table may still be reset.
          RuntimeError: If there is no such table.
        """
        self._client.Reset(table, milliseconds(timeout))

    def server_info(self, timeout: float | None = None) -> dict[str, reverb_types.TableInfo]:
        """Configuration and state of the server's tables, by name.

        Args:
          timeout: Longest time to wait for the server, in seconds; None or 0 for no limit.

        Raises:
          DeadlineExceededError: If the time is up.
        """
        tables = [
            reverb_types.TableInfo.from_serialized_proto(info)
            for info in self._serialized_table_infos(timeout)
        ]
        plane = self._client.known_data_plane()
        for table in tables:
            table.data_plane = plane
        return {table.name: table for table in tables}

    def checkpoint(self, *, timeout: float | None = None) -> str:
        """Has the server store its tables; returns the path of the checkpoint, on the server.

        Args:
          timeout: Longest time to wait for it, in seconds.

        Raises:
          DeadlineExceededError: If the time is up. The server goes on.
          ValueError: If the server has no checkpointer.
          RuntimeError: If storing fails.
        """
        return self._client.Checkpoint(milliseconds(timeout))

    def trajectory_writer(
        self,
        num_keep_alive_refs: int,
        *,
        validate_items: bool = True,
        get_signature_timeout_ms: int | None = None,
        max_in_flight_bytes: int | None = None,
    ) -> TrajectoryWriter:
        """A writer of items whose columns combine steps freely. Chunk lengths tune themselves.

        Args:
          num_keep_alive_refs: Last steps of each column that items can refer to.
          validate_items: Whether to check items against the table's signature before sending.
          get_signature_timeout_ms: Accepted for older programs; it has no effect.
          max_in_flight_bytes: Bytes that the writer may hold before appending waits.

        Raises:
          ValueError: If a number is below 1.
        """
        del get_signature_timeout_ms
        num_keep_alive_refs = integer("num_keep_alive_refs", num_keep_alive_refs)
        if num_keep_alive_refs < 1:
            raise ValueError(
                f"num_keep_alive_refs ({num_keep_alive_refs}) must be a positive integer"
            )
        limits = {}
        if max_in_flight_bytes is not None:
            limits["max_in_flight_bytes"] = integer("max_in_flight_bytes", max_in_flight_bytes)
        if limits and limits["max_in_flight_bytes"] < 1:
            raise ValueError(
                f"max_in_flight_bytes ({max_in_flight_bytes}) must be a positive integer"
            )
        options = pybind.AutoTunedChunkerOptions(
            num_keep_alive_refs=num_keep_alive_refs, throughput_weight=1.0
        )
        return TrajectoryWriter(self._client.NewTrajectoryWriter(options, validate_items, **limits))

    def structured_writer(self, configs: Sequence[Any]) -> "structured_writer.StructuredWriter":
        """A writer that makes items of the steps by patterns. See `gear_reverb.structured`.

        Args:
          configs: What items to make, and when; each is made by `structured.create_config`.

        Raises:
          ValueError: If there is no config, or one is invalid.
        """
        from gear_reverb import _patterns, structured_writer

        compiled = _patterns.compile_configs(
            configs if hasattr(configs, "__len__") else list(configs)
        )
        writer = structured_writer.StructuredWriter(self._client.NewStructuredWriter(compiled))
        structured_writer.flush_at_exit(writer)
        return writer

    def _serialized_table_infos(self, timeout: float | None) -> list[bytes]:
        timeout_ms = milliseconds(timeout) or 0
        try:
            return self._client.ServerInfo(timeout_ms)
        except errors.DeadlineExceededError as error:
            raise errors.DeadlineExceededError(
                f"ServerInfo call did not complete within provided timeout of {timeout:g}s"
            ) from error

    def _structure_of_table(self, table: str, timeout: float | None = None) -> Any:
        """The table's signature, or None. Only its structure matters, so TensorFlow stays out."""
        # A limit for a rate limiter may be less than an answer takes.
        return self._signature_of_table(
            table, None if timeout is None else max(number("timeout", timeout), _LEAST_PATIENCE)
        )

    def _signature_of_table(self, table: str, timeout: float | None) -> Any:
        """The table's signature, of `TensorSpec`s, or None."""
        from gear_reverb import _signature
        from gear_reverb.cc import schema_pb2

        for serialized in self._serialized_table_infos(timeout):
            info = schema_pb2.TableInfo.FromString(serialized)
            if info.name == table and info.HasField("signature"):
                return _signature.decode_message(info.signature, use_tensorflow=False)
        return None


def _as_sample(values: list, signature: Any) -> replay_sample.ReplaySample:
    """The core gives the info's fields first, as Python numbers, then the columns."""
    info = replay_sample.SampleInfo(*values[:_NUM_INFO_FIELDS])
    data = values[_NUM_INFO_FIELDS:]
    if signature is not None:
        data = tree.unflatten_as(signature, data)
    return replay_sample.ReplaySample(info=info, data=data)


def _key(key: Any) -> int:
    try:
        return operator.index(key)
    except TypeError:
        raise TypeError(f"Keys are integers, got {key!r}") from None


def _keys(keys: Any) -> np.ndarray:
    """Keys as u64[n]."""
    if hasattr(keys, "__array__"):  # Of any framework.
        array = np.asarray(keys)
    else:
        array = np.array([_key(key) for key in keys], dtype=object)
    if array.dtype == object:
        for key in array.flat:
            if not 0 <= _key(key) < 2**64:
                raise ValueError(f"Keys are in [0, 2**64), got {key}")
    elif array.size and array.dtype.kind not in "iu":
        raise TypeError(f"Keys are integers, got an array of {array.dtype}")
    elif array.dtype.kind == "i" and array.size and array.min() < 0:
        raise ValueError(f"Keys are in [0, 2**64), got {array.min()}")
    return array.reshape(-1).astype(np.uint64)
