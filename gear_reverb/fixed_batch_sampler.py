"""Batches that a device draws by itself into always the same arrays."""

from collections.abc import Callable
from typing import Any

from gear_reverb import pybind
from gear_reverb._device_priorities import DevicePriorities
from gear_reverb.batch_sampler import BatchMaker
from gear_reverb.replay_sample import ReplayBatch


class FixedBatchSampler:
    """See `Client.fixed_batch_sampler`. For one thread at a time, but for `close`.

    A batch is `prepare`, then `enqueue` or the replay of a CUDA graph that has captured it, on the
    same stream or one that waits for it; then `batch` has it, for work that comes after on that
    stream. Every `prepare` is for one batch: what is enqueued without one is drawn again from the
    table as it was, and does not count.
    """

    def __init__(
        self,
        native: pybind.FixedBatchSampler,
        make_batch: BatchMaker,
        current_stream: Callable[[], int],
        priorities: DevicePriorities,
    ) -> None:
        """Called by `Client.fixed_batch_sampler`; takes over the core's sampler."""
        self._native = native
        self._make_batch = make_batch
        self._current_stream = current_stream
        self._priorities = priorities
        self._batch: ReplayBatch | None = None

    def prepare(self, timeout: float | None = None, stream: int | None = None) -> None:
        """Waits until the table allows a batch, and has the device know of its changes.

        Not to be captured. The host does not wait for the device, but where memory has to be
        registered with it.

        Args:
          timeout: Longest time to wait for the rate limiter, in seconds; None for ever.
          stream: Address of the CUDA stream that the work is put on; None for the current one of
            PyTorch or CuPy, where `out` is one of these. Without meaning on the CPU.

        Raises:
          DeadlineExceededError: If the time is up. Nothing is lost: the next call goes on with what
            has been allowed.
          RuntimeError: If the device cannot gather the table's items by itself, if these are no
            longer as they were at the first call, or once closed. Says why.
          ValueError: If a batch is larger than `max_bytes`.
        """
        self._priorities.tell()
        if not self._make_batch.ready:
            self._make_batch.prepare()
        self._make_batch.call(self._native.Prepare, timeout, self._stream(stream))
        if self._batch is None:
            self._batch = self._make_batch(self._native.Arrays)

    def enqueue(self, stream: int | None = None) -> None:
        """Puts a batch on the stream: it is drawn, and written to the arrays of `batch`.

        Launches kernels whose arguments are always the same, and nothing else: it may be captured.

        Raises:
          RuntimeError: Before the first `prepare`, where one has found that items are no longer as
            they were, once closed, or from an empty table.
        """
        self._native.Enqueue(self._stream(stream))

    @property
    def batch(self) -> ReplayBatch:
        """The arrays, always the same ones; their content is that of the last batch enqueued.

        `table_size` and `times_sampled` of the info are None.

        Raises:
          RuntimeError: Before the first `prepare`.
        """
        if self._batch is None:
            raise RuntimeError("prepare() must have been called once before")
        return self._batch

    @property
    def table_size(self) -> int:
        """Items that the table had at the last `prepare`."""
        return self._native.TableSize()

    def update_priorities(self, keys: Any, priorities: Any, stream: int | None = None) -> None:
        """As that of `BatchSampler`; the table is told by `prepare`.

        The arrays are copied between what the stream was given before this call, such as a batch,
        and what comes after it, such as the next one; see `prepare` for which stream.
        """
        self._priorities.add(keys, priorities, stream)

    def close(self) -> None:
        """Waits for the device, and lets go of the table's items. Idempotent.

        Arrays stay as they are; a graph that has captured `enqueue` must not be replayed any more.
        """
        try:
            self._native.Close()
        finally:
            self._priorities.close()

    def __enter__(self) -> "FixedBatchSampler":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _stream(self, stream: int | None) -> int:
        return self._current_stream() if stream is None else stream
