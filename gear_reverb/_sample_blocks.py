"""A table's samples, many at a time: what the datasets are fed with.

A generator gives out blocks, lists of arrays `[rows, ...]`, one per component (the five fields of
`SampleInfo`, then the columns). While there is nothing to give, it gives empty blocks, a few each
second: so that the consumer, which cannot be interrupted within a call, can leave between two.
"""

import atexit
import dataclasses
import itertools
import os
import time
import weakref
from collections.abc import Generator, Iterator, Sequence

import numpy as np
import tree

from gear_reverb import client as client_lib
from gear_reverb import errors, pybind

# How long a call may take while there is nothing.
_WAIT_MS = 50
_SIGNATURE_SECONDS = 0.25
_CONNECT_SECONDS = 60.0
# How long the end of the process waits for consumers to notice, and for their threads to unwind.
_EXIT_SECONDS = 1.0
_GRACE_SECONDS = 0.05
# What a block holds at most, unless a single item is larger.
_BLOCK_BYTES = 4 << 20
_BLOCK_ITEMS = 256
_RAGGED_BLOCK_ITEMS = 64
# Blocks that are gathered ahead.
_MOST_PREFETCH = 2

_INFO_DTYPES = (np.uint64, np.float64, np.int64, np.float64, np.int32)
_C_NAMES = {"float32": "float", "float64": "double", "object": "string"}

Shape = tuple[int | None, ...] | None
"""Sizes of axes, None for any; None for any rank."""


@dataclasses.dataclass(frozen=True)
class Column:
    """What a column of the data is expected to be; of one step if steps are asked for."""

    shape: Shape
    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class Options:
    """What to sample, and how far ahead.

    Attributes:
      columns: The data's columns, flat.
      timesteps: Whether rows are steps of items rather than items.
      max_in_flight: Items that may be sampled and not yet given out.
      max_samples_per_stream, max_samples, rate_limiter_timeout_ms: As of the datasets; -1 for none.
      batch_size: If positive, blocks are whole batches of so many rows; only the last is smaller.
      drop_remainder: Whether the last batch is left out if it is smaller.
      pad: Of batches: whether shorter items are filled up with zeros, or b"".
      ragged: Of blocks of items: columns, by index, whose items lie one after another along the
        axis of steps, `[sum of steps, ...]`. After all columns comes for each of these an array of
        `block_items` lengths, zero where the block has no more items.
    """

    columns: Sequence[Column]
    timesteps: bool
    max_in_flight: int
    max_samples_per_stream: int = -1
    rate_limiter_timeout_ms: int = -1
    max_samples: int = -1
    batch_size: int = 0
    drop_remainder: bool = False
    pad: bool = False
    ragged: Sequence[int] = ()

    @property
    def block_items(self) -> int:
        """The most items of a block."""
        if self.batch_size:
            return self.batch_size
        most = _RAGGED_BLOCK_ITEMS if self.ragged else _BLOCK_ITEMS
        # A block that is being consumed counts as in flight, too.
        return max(1, min(most, self.max_in_flight // 2))


def blocks(server_address: str, table: str, options: Options) -> Iterator[Sequence[np.ndarray]]:
    """Blocks, until `max_samples` are given out or the rate limiter's timeout has passed.

    Raises:
      ValueError: If the table's signature, or a sample, is not what `columns` says.
      ReverbError: If there is no such table, or no server.
    """
    empty = _empty(options)
    client = client_lib.Client(server_address)
    described = yield from _until_signature_is_checked(client, table, options, empty)
    sampler = _sampler(client, table, options)
    _open_samplers.add(sampler)
    _awaited_samplers.add(sampler)
    try:
        while True:
            try:
                block = sampler.next(_WAIT_MS)
            except StopIteration:
                return
            if block is None:
                yield empty
                continue
            _check_block(block, table, options, described)
            if options.drop_remainder and len(block[0][0]) < options.batch_size:
                return
            _awaited_samplers.discard(sampler)
            yield from _parts(block, options)
            _awaited_samplers.add(sampler)
    finally:
        _open_samplers.discard(sampler)
        _awaited_samplers.discard(sampler)
        sampler.close()


def _sampler(client: client_lib.Client, table: str, options: Options) -> pybind.BlockSampler:
    if options.batch_size:
        form = "padded" if options.pad else "stacked"
    else:
        form = "steps" if options.timesteps else "items"
    items = options.block_items
    prefetch = max(0, min(_MOST_PREFETCH, options.max_in_flight // items - 1))
    return pybind.BlockSampler(
        client._client,
        table,
        form=form,
        size=items,
        block_bytes=_BLOCK_BYTES,
        prefetch=prefetch,
        ahead=options.max_in_flight - (prefetch + 1) * items,
        max_samples=options.max_samples,
        max_samples_per_stream=options.max_samples_per_stream,
        rate_limiter_timeout_ms=options.rate_limiter_timeout_ms,
    )


_open_samplers: weakref.WeakSet = weakref.WeakSet()
# Those whose consumer waits for an item right now, and will come back for one.
_awaited_samplers: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _close_samplers() -> None:
    """Ends all sequences: no thread may call into Python once the interpreter is gone."""
    if not _open_samplers:
        return
    for sampler in list(_open_samplers):
        sampler.close()
    deadline = time.monotonic() + _EXIT_SECONDS
    while _awaited_samplers and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(_GRACE_SECONDS)


def _empty(options: Options) -> Sequence[np.ndarray]:
    arrays = [np.empty(0, dtype) for dtype in _INFO_DTYPES]
    for i, column in enumerate(options.columns):
        shape = [size or 0 for size in column.shape or ()]
        if i in options.ragged:
            arrays.append(np.empty([0, *shape[1:]], column.dtype))
        else:
            arrays.append(np.empty([0, *shape], column.dtype))
    arrays.extend(np.zeros(options.block_items, np.int32) for _ in options.ragged)
    return arrays


def _until_signature_is_checked(
    client: client_lib.Client, table: str, options: Options, empty: Sequence[np.ndarray]
) -> Generator[Sequence[np.ndarray], None, str]:
    """Compares with the signature, if there is one, before there is any data to compare with.

    Returns:
      What data is to be, for error messages.
    """
    patience = time.monotonic() + _connect_seconds()
    while True:
        try:
            signature = _flat_signature(client, table)
            break
        except errors.DeadlineExceededError:
            if time.monotonic() > patience:
                raise
        yield empty
    if signature is None:
        return _described([("?", column.shape, column.dtype) for column in options.columns])
    described = _described(signature)
    if len(signature) != len(options.columns):
        raise ValueError(
            f"Inconsistent number of tensors requested from table '{table}'. Requested "
            f"{len(options.columns)} tensors, but table signature shows {len(signature)} tensors. "
            f"Table signature: {described}"
        )
    for i, (column, (_, shape, dtype)) in enumerate(zip(options.columns, signature)):
        if column.dtype != dtype or not _compatible(column.shape, shape):
            raise ValueError(
                f"Requested incompatible tensor at flattened index {i} from table '{table}'. "
                f"Requested (dtype, shape): ({_describe(column.shape, column.dtype)}). Signature "
                f"(dtype, shape): ({_describe(shape, dtype)}). Table signature: {described}"
            )
    return described


def _connect_seconds() -> float:
    """How long a server may be gone, as the core reads it."""
    try:
        seconds = float(os.environ["GEAR_REVERB_CONNECT_TIMEOUT"])
    except (KeyError, ValueError):
        return _CONNECT_SECONDS
    return seconds if seconds >= 0 else _CONNECT_SECONDS


def _flat_signature(
    client: client_lib.Client, table: str
) -> list[tuple[str, Shape, np.dtype]] | None:
    """Path, shape and dtype of each column; None if there is no signature, or no such table."""
    signature = client._signature_of_table(table, _SIGNATURE_SECONDS)
    if signature is None:
        return None
    return [
        ("/".join(map(str, path)), spec.shape, spec.dtype)
        for path, spec in tree.flatten_with_path(signature)
    ]


def _check_block(block: tuple, table: str, options: Options, described: str) -> None:
    _, columns, lengths = block
    if len(columns) != len(options.columns):
        raise ValueError(
            f"Inconsistent number of tensors received from table '{table}'. Specification has "
            f"{len(options.columns)} tensors, but data coming from the table shows {len(columns)} "
            f"tensors. Table signature: {described}"
        )
    for i, (array, expected) in enumerate(zip(columns, options.columns)):
        shape = array.shape[1:]
        if lengths[i] is not None and not options.timesteps:
            shape = (_odd_length(lengths[i], expected.shape), *shape)
        if array.dtype != expected.dtype or not _compatible(expected.shape, shape):
            raise ValueError(
                f"Received incompatible tensor at flattened index {i} from table '{table}'. "
                f"Specification has (dtype, shape): ({_describe(expected.shape, expected.dtype)}). "
                f"Tensor has (dtype, shape): ({_describe(shape, array.dtype)}). "
                f"Table signature: {described}"
            )


def _odd_length(lengths: np.ndarray, expected: Shape) -> int:
    """Of different lengths, the first that is not as expected, if any."""
    if expected and expected[0] is not None:
        return int(lengths[np.argmax(lengths != expected[0])])
    return int(lengths[0])


def _parts(block: tuple, options: Options) -> Iterator[Sequence[np.ndarray]]:
    """A block in the form that `blocks` gives out; in several where there is no other way."""
    info, columns, lengths = block
    if options.timesteps:
        yield [np.repeat(field, lengths[0]) for field in info] + columns
    elif options.ragged:
        yield _packed(info, columns, lengths, options)
    elif all(of_column is None for of_column in lengths):
        yield [*info, *columns]
    else:
        yield from _runs(info, columns, lengths)


def _packed(
    info: tuple, columns: list[np.ndarray], lengths: list[np.ndarray | None], options: Options
) -> Sequence[np.ndarray]:
    count = len(info[0])
    columns, padded_lengths = list(columns), []
    for i in options.ragged:
        of_items = np.zeros(options.block_items, np.int32)
        if lengths[i] is None:
            steps, *shape = columns[i].shape[1:]
            of_items[:count] = steps
            columns[i] = columns[i].reshape(count * steps, *shape)
        else:
            of_items[:count] = lengths[i]
        padded_lengths.append(of_items)
    return [*info, *columns, *padded_lengths]


def _runs(
    info: tuple, columns: list[np.ndarray], lengths: list[np.ndarray | None]
) -> Iterator[Sequence[np.ndarray]]:
    """Runs of items that are equally long, stacked."""
    known = [of_column for of_column in lengths if of_column is not None]
    changes = np.any([np.diff(of_column) != 0 for of_column in known], axis=0)
    bounds = [0, *(np.flatnonzero(changes) + 1), len(info[0])]
    ends = [None if of_column is None else np.cumsum(of_column) for of_column in lengths]
    for begin, end in itertools.pairwise(bounds):
        run = [field[begin:end] for field in info]
        for column, of_items, end_steps in zip(columns, lengths, ends):
            if of_items is None:
                run.append(column[begin:end])
                continue
            steps = int(of_items[begin])
            last = int(end_steps[end - 1])
            part = column[last - steps * (end - begin) : last]
            run.append(part.reshape(end - begin, steps, *column.shape[1:]))
        yield run


def _compatible(a: Shape, b: Shape) -> bool:
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))


def _described(columns: Sequence[tuple[str, Shape, np.dtype]]) -> str:
    return ", ".join(
        f"{i}: Tensor<name: '{name}', {_describe(shape, dtype, 'dtype: {}, shape: {}')}>"
        for i, (name, shape, dtype) in enumerate(columns)
    )


def _describe(shape: Shape, dtype: np.dtype, pattern: str = "{}, {}") -> str:
    """In the words of Reverb's messages."""
    axes = ",".join("?" if size is None else str(size) for size in shape or ())
    name = _C_NAMES.get(dtype.name, dtype.name)
    return pattern.format(name, "<unknown>" if shape is None else f"[{axes}]")
