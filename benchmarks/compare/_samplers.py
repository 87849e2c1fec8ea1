"""Sides that draw batches: each function sets one up and returns what draws a batch.

That call hands out the batch as the library's documentation says to get it, and returns the
batch's payload in bytes. Nobody reads the batch. Servers and clients that must live on are kept
by the call.
"""

import ctypes
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import _tables
import numpy as np
from _workloads import Workload

Draw = Callable[[], float]


def server_in_process(implementation: str, workload: Workload) -> tuple[Any, str]:
    """A server of a filled table in this process, and its address."""
    reverb = _tables.load(implementation)
    server = reverb.Server([_tables.make_table(reverb, workload)])
    address = f"localhost:{server.port}"
    _tables.fill(reverb.Client(address), workload, workload.items)
    return server, address


def gear_reverb(workload: Workload, address: str, plane: str, **options: Any) -> Draw:
    """`Client.batch_sampler`; batches are dropped before the next is asked for."""
    client = _tables.load("gear_reverb").Client(address)
    _tables.require_plane(client, plane)
    batches = client.batch_sampler(_tables.TABLE, workload.batch, **options)
    if workload.ragged:
        return functools.partial(_next_ragged, batches, workload.step_bytes)
    return functools.partial(_next, batches, workload.batch_bytes)


def dm_reverb(workload: Workload, address: str) -> Draw:
    """`TrajectoryDataset(...).batch(n)`, the form that the documentation recommends for speed.

    Its options are those that were the fastest of workers -1, 1, 4, in flight 2, 4, 10 batches,
    with and without `prefetch`. Ragged items take `padded_batch`, and a map that notes their
    lengths, without which the padding is not known.
    """
    small = workload.item_bytes < 16384
    reverb = _tables.load("dm-reverb")
    dataset = reverb.TrajectoryDataset.from_table_signature(
        server_address=address,
        table=_tables.TABLE,
        max_in_flight_samples_per_worker=(4 if small else 2) * workload.batch,
        num_workers_per_iterator=4 if small else -1,
    )
    if not workload.ragged:
        batches = iter(dataset.batch(workload.batch, drop_remainder=True))
        return functools.partial(_next, batches, workload.batch_bytes)
    import tensorflow as tf

    first = workload.columns[0].name
    dataset = dataset.map(lambda sample: (sample.data, tf.shape(sample.data[first])[0]))
    batches = iter(dataset.padded_batch(workload.batch, drop_remainder=True))

    def draw() -> float:
        _, lengths = next(batches)
        return float(lengths.numpy().sum()) * workload.step_bytes

    return draw


def cpprb(workload: Workload) -> Draw:
    """`ReplayBuffer.sample`; an item is one entry of shape [steps, ...]."""
    import cpprb

    fields = {
        column.name: {"shape": (workload.steps, *column.shape), "dtype": np.dtype(column.dtype)}
        for column in workload.columns
    }
    buffer = cpprb.ReplayBuffer(workload.items, fields)
    for block in _blocks(workload):
        buffer.add(**block)

    def draw() -> float:
        buffer.sample(workload.batch)
        return workload.batch_bytes

    return draw


def torchrl(workload: Workload) -> Draw:
    """`TensorDictReplayBuffer` over `LazyTensorStorage`: preallocated, contiguous, in memory."""
    import _torchrl

    buffer = _torchrl.replay_buffer(workload)
    for block in _blocks(workload):
        buffer.extend(_torchrl.as_tensordict(block))

    def draw() -> float:
        buffer.sample()
        return workload.batch_bytes

    return draw


def flashbax(workload: Workload) -> Draw:
    """`make_item_buffer` on JAX's CPU device; `add` and `sample` are jitted, `add` donates."""
    import _flashbax

    buffer, state = _flashbax.filled_item_buffer(workload, _blocks(workload))
    sample, key = _flashbax.jitted_sample(buffer), _flashbax.keys()

    def draw() -> float:
        sample(state, next(key))
        return workload.batch_bytes

    return draw


def memcpy(workload: Workload) -> Draw:
    """The limit: one thread copies a batch's bytes as one block to a destination that is reused.

    Source and destination are warm (touched before); the source is as large as the table's payload
    and is read from its start to its end, so that it comes from memory, as drawn items do.
    """
    source = np.ones(_table_bytes(workload), np.uint8)
    destination = np.ones(workload.batch_bytes, np.uint8)
    first, size, target = source.ctypes.data, workload.batch_bytes, destination.ctypes.data
    starts = itertools.cycle([first + i * size for i in range(len(source) // size)])

    def draw(_kept=(source, destination)) -> float:
        ctypes.memmove(target, next(starts), size)
        return size

    return draw


def _next(batches: Iterator, payload: float) -> float:
    next(batches)
    return payload


def _next_ragged(batches: Iterator, step_bytes: int) -> float:
    batch = next(batches)
    packed = getattr(batch, "cu_seqlens", None)
    steps = batch.lengths.sum() if packed is None else packed[-1]
    return float(steps) * step_bytes


def _table_bytes(workload: Workload) -> int:
    return max(workload.batch_bytes, workload.item_bytes * workload.items)


def _blocks(workload: Workload) -> Iterator[dict[str, np.ndarray]]:
    """The table's items, stacked [n, steps, ...]; n divides their number."""
    pool = workload.pool()
    count = min(len(pool), workload.items)
    while workload.items % count:
        count -= 1
    block = {name: np.stack([item[name] for item in pool[:count]]) for name in pool[0]}
    repeats = max(1, min(workload.items // count, (16 << 20) // (count * workload.item_bytes)))
    while (workload.items // count) % repeats:
        repeats -= 1
    block = {name: np.concatenate([values] * repeats) for name, values in block.items()}
    for _ in range(workload.items // count // repeats):
        yield block
