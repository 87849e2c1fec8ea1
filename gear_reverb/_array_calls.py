"""What a client does with many items at a time, as arrays."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gear_reverb import _insert_batch, pybind, replay_sample
from gear_reverb._arguments import number
from gear_reverb._device_priorities import DevicePriorities
from gear_reverb._frameworks import current_stream
from gear_reverb.batch_sampler import (
    DEFAULT_MAX_BYTES,
    BatchMaker,
    BatchSampler,
    Beta,
    check_seed,
)
from gear_reverb.fixed_batch_sampler import FixedBatchSampler

_MOST_MILLISECONDS = 2**53  # What a float holds exactly; 285,000 years.


class ArrayCalls:
    """The part of `Client` whose calls take and give arrays of many items."""

    # What `Client` has.
    _client: pybind.Client
    _batch_makers: dict[tuple[str, str], BatchMaker]
    _structure_of_table: Callable[..., Any]
    mutate_priorities: Callable[..., None]

    def insert_batch(
        self, table: str, steps: Any, priorities: Any, *, timeout: float | None = None
    ) -> np.ndarray:
        """Inserts N items in one call, and waits until they are in.

        For bulk loading and vectorised environments: rows of an array become items with neither a
        writer nor a Python object in between. Rows that lie together share storage of about
        64 KiB, which stays until the last of them is gone.

        If all leaves have a second axis of one length T, items are trajectories of T steps, as a
        batch sampler gives them; otherwise, single steps.

        Args:
          table: Name of the table.
          steps: Nest of arrays `[N, ...]`, in the order of the table's signature; item i has the
            columns `leaf[i]`. Contiguous leaves are copied once at most.
          priorities: Priority of all items, or one per item, `[N]`.
          timeout: Longest time to wait for the server and the table's rate limiter, in seconds.

        Returns:
          The items' keys, `uint64[N]`.

        Raises:
          ValueError: If there is no leaf, leaves differ in N, the table's signature does not
            match, or a priority is not finite, or negative where it is a weight. Nothing is
            inserted then.
          RuntimeError: If there is no such table.
          DeadlineExceededError: If the time is up; tells how many items are known to be in, which
            are the first.
        """
        columns, size = _insert_batch.stacked_columns(steps, "items")
        timeout_ms = milliseconds(timeout)
        return _insert_batch.insert(
            steps,
            self._client,
            table,
            columns,
            _insert_batch.priorities_of(priorities, size),
            -1 if timeout_ms is None else timeout_ms,
        )

    def batch_sampler(
        self,
        table: str,
        batch_size: int,
        *,
        prefetch: int = 2,
        timeout: float | None = None,
        ragged: str = "error",
        pad_to: int | None = None,
        beta: Beta = None,
        seed: int | None = None,
        out: str = "numpy",
        max_bytes: int = DEFAULT_MAX_BYTES,
        device: str | None = None,
        cast: Mapping[str, str] | None = None,
        draw: str = "host",
    ) -> BatchSampler:
        """An endless iterator of batches, each gathered into one array per column.

        Data has the structure of the table's signature, or is a flat list of columns if there is
        none; its arrays have shape `[B, T, ...]`, or `[B, ...]` for squeezed columns. They own
        their memory, start at multiples of 128 bytes, and are never written to again; when the last
        array of a batch goes, a later batch uses its memory.

        Args:
          table: Name of the table.
          batch_size: Items per batch, B.
          prefetch: Batches that may be drawn before they are asked for. 0: a batch is drawn when
            it is asked for, in the calling thread. What is drawn and never used is counted in
            `server_info()[table].num_unused_samples` when the sampler is closed.
          timeout: Longest time to wait for the server and the rate limiter, per batch, in seconds;
            None for ever.
          ragged: For items of different lengths T: "error"; "pad", which fills up with zeros (b""
            for text) and adds `lengths` and `mask`; or "pack", which concatenates along time, shape
            `[sum of T, ...]`, and adds `lengths` and `cu_seqlens`.
          pad_to: For "pad", the T of all batches, so that all have one shape. None: that of the
            longest item of the batch, or, where the device draws, of the longest that the sampler
            has known of.
          beta: If given, batches have importance weights: (table_size * probability)^-beta, divided
            by the largest of the batch. A number, or a function that gives it for each batch.
          seed: Have batch number i drawn by a generator of its own, made from `seed` and i, instead
            of the table's: from the same state of a table, equal seeds draw equal batches, whatever
            others draw in between. Not over gRPC.
          out: Kind of the arrays: "numpy", "torch", "jax" or "tensorflow". No copy is made
            where the framework takes the dtype by DLPack: TensorFlow takes no float8, and bools
            only in newer releases. Keys are NumPy arrays always, and so are arrays of
            64-bit numbers for JAX without `jax_enable_x64`.
          max_bytes: Largest batch; a larger one is refused before memory is taken for it.
          device: Where batches are gathered. "cuda:N": by kernels on GPU number N, into its memory,
            for `out` of "torch", "jax", "cupy" or "dlpack" (objects that any of them take by
            DLPack); data, `lengths`, `mask`, `cu_seqlens` and `weights` are there then, and `info`
            and text are NumPy arrays. For JAX without `jax_enable_x64` arrays of 64-bit numbers
            stay DLPack objects. "cpu": by the kernels' twin on the CPU, the same batches as with
            None, the default, and casts too. See docs/guides/gpu.md.
          cast: With a device, what columns of a dtype become on their way: {"float32": "bfloat16"},
            {"float32": "float16"}, {"uint8": "float16"} (divided by 255), or two of these.
          draw: Who chooses the items, and which. "host": the table's sampler. "device": the same
            strategy on the device, where `key`, `probability` and `priority` are then (and keys are
            arrays of `out` on a GPU); `times_sampled` is None. Needs a device, a server of this
            process, `ragged` other than "pack", and a table without max_times_sampled. Draws are
            those of a generator made of `seed`, the same on every device. If the table's items are
            not all alike (but, with "pad", for their lengths), are text, or lie where the device
            cannot read, or it has no memory for its part of the table, the host draws after all:
            `repr` and `device_stats` say why. The sampler keeps items that left the table until
            the device has done with them. "top_k": as "device", but each batch is the first
            `batch_size` items, 1024 at most, of the order that the table's sampler has, each once
            and with a probability of 1: the oldest of Fifo, the youngest of Lifo, those of the
            lowest or highest priority of a heap. There is no falling back.

        Raises:
          NotImplementedError, RuntimeError: If the device is a GPU that cannot be used; says why.
          ValueError: If an argument is out of range; from `next` also if the items do not make a
            batch (their columns differ in length, dtype or shape, are longer than `pad_to` or
            larger than `max_bytes`), or if a seed cannot be used.
          DeadlineExceededError: From `next`, if the time is up. Nothing is lost: the next call goes
            on with what has been drawn.
          RuntimeError: From `next`, if there is no such table; for "top_k" also while it has fewer
            items than `batch_size`, or where the device cannot gather them by itself.
        """
        _seconds(timeout)
        if cast and device is None:
            raise ValueError("cast needs a device, which may be 'cpu'")
        if draw not in ("host", "device", "top_k"):
            raise ValueError(f"draw must be 'host', 'device' or 'top_k', but is {draw!r}")
        if draw != "host" and device is None:
            raise ValueError(f"draw={draw!r} needs a device, which may be 'cpu'")
        if draw != "host" and ragged == "pack":
            raise ValueError(f"draw={draw!r} needs ragged='error' or 'pad'")
        native = self._client.NewBatchSampler(
            table,
            batch_size,
            prefetch,
            ragged,
            pad_to,
            check_seed(seed),
            max_bytes,
            device,
            *_casts(cast),
            draw,
        )
        gpu = _gpu(device)
        on_gpu = gpu is not None
        maker = BatchMaker(lambda limit: self._structure_of_table(table, limit), out, on_gpu)
        name = f"table={table}, batch_size={batch_size}, device={device}, draw={draw}"
        stream = current_stream(out, gpu) if on_gpu and out in ("torch", "cupy") else None
        priorities = self._priorities_from(table, gpu, stream, timeout)
        return BatchSampler(
            native, maker, timeout=timeout, beta=beta, priorities=priorities, name=name
        )

    def fixed_batch_sampler(
        self,
        table: str,
        batch_size: int,
        *,
        device: str,
        ragged: str = "error",
        pad_to: int | None = None,
        beta: float | None = None,
        seed: int | None = None,
        out: str = "numpy",
        max_bytes: int = DEFAULT_MAX_BYTES,
        cast: Mapping[str, str] | None = None,
        draw: str = "device",
    ) -> FixedBatchSampler:
        """Batches that a device draws into always the same arrays, for CUDA graphs.

        Its two halves are apart: `prepare`, by the host, and `enqueue`, which only launches kernels
        and may be captured. What `batch_sampler` says of `draw="device"` holds here, but there is
        no other way: where the device cannot gather the items by itself, `prepare` fails. All
        memory for `max_size` items is taken at once on the device, by the first `prepare` at the
        latest: for each item up to 33 bytes, and for every column 16 for each of at least four
        pieces, twice as many as the first items have.

        Args:
          table: Name of the table.
          batch_size: Items per batch, B.
          device: "cuda:N", or "cpu" for the kernels' twin.
          ragged: For items of different lengths T: "error", or "pad", as `batch_sampler` has it.
          pad_to: For "pad", the T of the arrays; items that are longer make `prepare` fail. None:
            that of the longest item at the first `prepare`.
          beta: If given, batches have importance weights; the same for all.
          seed: Of the draws; random if not given.
          out: Kind of the arrays, which change: "torch"; "cupy" or "dlpack" on a GPU;
            "numpy" on the CPU.
          max_bytes: Largest batch; `prepare` refuses a larger one.
          cast: As `batch_sampler` has it.
          draw: "device" or "top_k", as `batch_sampler` has them. While the table has fewer items
            than `batch_size`, `prepare` fails for "top_k".

        Raises:
          NotImplementedError, RuntimeError: If the device is a GPU that cannot be used; or if the
            table is unknown or has max_times_sampled.
          ValueError: If an argument is out of range, or the server is not of this process.
          IndexError: If the device has no memory for the table.
        """
        if ragged not in ("error", "pad"):
            raise ValueError(f"ragged must be 'error' or 'pad', but is {ragged!r}")
        if draw not in ("device", "top_k"):
            raise ValueError(f"draw must be 'device' or 'top_k', but is {draw!r}")
        if out in ("jax", "tensorflow"):
            raise ValueError(f"out={out!r} has arrays that never change")
        native = self._client.NewFixedBatchSampler(
            table,
            batch_size,
            ragged,
            pad_to,
            check_seed(seed),
            max_bytes,
            device,
            *_casts(cast),
            beta,
            draw == "top_k",
        )
        gpu = _gpu(device)
        on_gpu = gpu is not None
        maker = BatchMaker(lambda limit: self._structure_of_table(table, limit), out, on_gpu)
        stream = current_stream(out, gpu) if on_gpu else lambda: 0
        priorities = self._priorities_from(table, gpu, stream, None)
        return FixedBatchSampler(native, maker, stream, priorities)

    def _priorities_from(
        self,
        table: str,
        gpu: int | None,
        stream: Callable[[], int] | None,
        timeout: float | None,
    ) -> DevicePriorities:
        def update(keys: Any, priorities: Any) -> None:
            self.update_priorities(table, keys, priorities, timeout=timeout)

        return DevicePriorities(update, gpu, stream)

    def sample_batch(
        self,
        table: str,
        batch_size: int,
        *,
        timeout: float | None = None,
        ragged: str = "error",
        pad_to: int | None = None,
        beta: float | None = None,
        out: str = "numpy",
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> replay_sample.ReplayBatch:
        """One batch, drawn now. Arguments and errors are those of `batch_sampler`.

        The stream to the server stays open for the next call, so that a batch costs one exchange.
        """
        maker = self._batch_makers.get((table, out))
        if maker is None:
            maker = BatchMaker(lambda limit: self._structure_of_table(table, limit), out)
            maker.prepare(timeout)
        batch = maker(
            self._client.SampleBatch, table, batch_size, ragged, pad_to, max_bytes, timeout, beta
        )
        self._batch_makers[table, out] = maker
        return batch

    def update_priorities(
        self, table: str, keys: Any, priorities: Any, *, timeout: float | None = None
    ) -> None:
        """Updates priorities of items. Unknown keys are ignored.

        Args:
          table: Name of the table.
          keys: Integers, shape `[n]`.
          priorities: Numbers, shape `[n]`.
          timeout: Longest time to wait for the server, in seconds.

        Raises:
          As for `mutate_priorities`.
        """
        self.mutate_priorities(table, updates=(keys, priorities), timeout=timeout)


def milliseconds(seconds: float | None) -> int | None:
    """A time limit as the core takes it, at least 0; None, like infinity, is none.

    Raises:
      TypeError: If it is no number.
      ValueError: If it is not a number.
    """
    if seconds is None or seconds == math.inf:
        return None
    seconds = number("timeout", seconds)
    if math.isnan(seconds):
        raise ValueError(f"timeout ({seconds}) is not a number of seconds")
    return math.ceil(min(max(0, seconds) * 1000, _MOST_MILLISECONDS))


def _gpu(device: str | None) -> int | None:
    """Of "cuda" and "cuda:1" the number."""
    return None if device in (None, "cpu") else int(device.partition(":")[2] or 0)


def _seconds(timeout: float | None) -> None:
    """Raises ValueError for a timeout that is negative or not a number, TypeError for no number."""
    if timeout is not None and not number("timeout", timeout) >= 0:
        raise ValueError(f"timeout ({timeout}) must be >= 0 seconds")


def _casts(cast: Mapping[str, str] | None) -> tuple[str, str]:
    """What columns of float32 and of uint8 become; "" leaves them."""
    casts = dict(cast or {})
    pair = casts.pop("float32", ""), casts.pop("uint8", "")
    if casts:
        raise ValueError(f"Columns of {min(casts)} cannot be cast, only float32 and uint8")
    return pair
