"""Batches of items, gathered into one array per column by the core."""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gear_reverb import _frameworks, pybind
from gear_reverb._arguments import integer
from gear_reverb._column_paths import paths_of, with_paths
from gear_reverb._device_priorities import DevicePriorities
from gear_reverb.replay_sample import ReplayBatch, SampleInfo

DEFAULT_MAX_BYTES = 1 << 32

Beta = float | Callable[[], float | None] | None


class BatchSampler(Iterator[ReplayBatch]):
    """An endless iterator of batches; see `Client.batch_sampler`. For any number of threads."""

    def __init__(
        self,
        native: pybind.BatchSampler,
        make_batch: "BatchMaker",
        *,
        timeout: float | None,
        beta: Beta,
        priorities: DevicePriorities,
        name: str,
    ) -> None:
        """Called by `Client.batch_sampler`; takes over the core's sampler."""
        self._name = name
        self._native = native
        self._make_batch = make_batch
        self._timeout = timeout
        self._beta = beta
        self._priorities = priorities

    def __repr__(self) -> str:
        why = self._native.WhyHostDraws()
        return f"BatchSampler, {self._name}" + (f" (by the host, since {why})" if why else "")

    def __iter__(self) -> "BatchSampler":
        return self

    def __next__(self) -> ReplayBatch:
        self._priorities.tell()
        if not self._make_batch.ready:
            self._make_batch.prepare(self._timeout)
        beta = self._beta() if callable(self._beta) else self._beta
        return self._make_batch(self._native.Next, self._timeout, beta)

    def __enter__(self) -> "BatchSampler":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def device_stats(self) -> dict[str, Any] | None:
        """How the sampler's device does, as an entry of `gear_reverb.cuda.stats()["in_use"]`.

        Also `why_host_draws`: why the host draws though the device should, or "". None without a
        device.
        """
        stats = self._native.DeviceStats()
        return stats and stats | {"why_host_draws": self._native.WhyHostDraws()}

    def update_priorities(self, keys: Any, priorities: Any) -> None:
        """Updates priorities of the table's items, and does not wait for arrays on the GPU.

        They are copied to the host behind what their framework has begun, and the table is told by
        one of the next calls, of this or `next`, once they are there, in order; at the latest by
        `close`. Work that the current stream of PyTorch or CuPy is given afterwards, where `out` is
        one of these, may overwrite them; nothing else may. Unknown keys are ignored. Not to be
        captured in a CUDA graph. PyTorch hands over arrays of its current GPU alone.

        Args:
          keys: Integers, shape `[n]`, on the host or the sampler's GPU: `batch.info.key`.
          priorities: Numbers, shape `[n]`, likewise; float16, float32 or float64 on the GPU.

        Raises:
          TypeError, ValueError, BufferError: If the arrays are no such ones, or PyTorch does not
            hand them over.
          ValueError, RuntimeError: As `Client.update_priorities`, of this update or one that came
            before, which is lost then; of one before, this one is not made. From `next` and
            `close`, too.
          RuntimeError: Once closed.
        """
        self._priorities.add(keys, priorities)

    def close(self) -> None:
        """Stops drawing, and tells the server how many drawn items were never used. Idempotent.

        Batches that were given out stay as they are. `next` raises RuntimeError afterwards.
        """
        try:
            self._native.Close()
        finally:
            self._priorities.close()


class BatchMaker:
    """Makes a `ReplayBatch` of what the core gives, in one structure and for one framework."""

    def __init__(
        self, structure: Callable[[float | None], Any], out: str, on_gpu: bool = False
    ) -> None:
        """`structure` gives the table's signature, or None; `prepare` calls it with its timeout.

        Raises:
          ValueError: If `out` is not the name of a framework, or of one without GPUs.
          ImportError: If the framework is not installed.
        """
        self._structure = structure
        self._unflatten: Callable[[list], Any] | None = None
        self._paths: list[tuple] = []
        self._on_gpu = on_gpu
        self._convert = (_frameworks.gpu_converter if on_gpu else _frameworks.converter)(out)

    @property
    def ready(self) -> bool:
        """Whether the structure is known."""
        return self._unflatten is not None

    def prepare(self, timeout: float | None = None) -> None:
        """Finds out the structure; to be called before the first batch is drawn."""
        structure = self._structure(timeout)
        self._unflatten = compile_unflatten(structure)
        self._paths = [] if structure is None else paths_of(structure)

    def call(self, native: Callable[..., Any], *args: Any) -> Any:
        """What the core's call gives; its errors name columns by their paths, where known."""
        return with_paths(native, lambda: self._paths, *args)

    def __call__(self, native: Callable[..., tuple], *args: Any) -> ReplayBatch:
        """The batch that a call of the core gives.

        That is columns, and (info, lengths, mask, cu_seqlens, weights).
        """
        columns, (info, lengths, mask, cu_seqlens, weights) = self.call(native, *args)
        convert = self._convert
        unflatten = self._unflatten
        if convert is not None:
            columns = [convert(column) for column in columns]
            # On the host keys go back to the server as they are, and few frameworks have 64-bit
            # unsigned integers. On a GPU `convert` leaves what is on the host.
            info = [
                field if field is None or (i == 0 and not self._on_gpu) else convert(field)
                for i, field in enumerate(info)
            ]
        batch = ReplayBatch(SampleInfo(*info), unflatten(columns))
        if lengths is not None:
            batch.lengths = _side(lengths, convert, unflatten)
            batch.mask = _side(mask, convert, unflatten)
            batch.cu_seqlens = _side(cu_seqlens, convert, unflatten)
        if weights is not None:
            batch.weights = weights if convert is None else convert(weights)
        return batch


def _side(value: Any, convert: Callable | None, unflatten: Callable[[list], Any]) -> Any:
    """An array of all columns, or a list of one or None per column."""
    if isinstance(value, list):
        return unflatten([_side(entry, convert, unflatten) for entry in value])
    return value if value is None or convert is None else convert(value)


def check_sizes(batch_size: int, prefetch: int, max_batches: int | None) -> None:
    """Checks what the adapters of frameworks take.

    Raises:
      TypeError: If one is no integer.
      ValueError: If `batch_size` is below 1, or another below 0.
    """
    if integer("batch_size", batch_size) < 1:
        raise ValueError(f"batch_size ({batch_size}) must be a positive integer")
    if integer("prefetch", prefetch) < 0:
        raise ValueError(f"prefetch ({prefetch}) must not be negative")
    if max_batches is not None and integer("max_batches", max_batches) < 0:
        raise ValueError(f"max_batches ({max_batches}) must not be negative")


def check_seed(seed: Any) -> int | None:
    """The seed as an integer.

    Raises:
      TypeError: If it is none.
      ValueError: If it does not fit 64 bits.
    """
    if seed is None:
        return None
    seed = integer("seed", seed)
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed ({seed}) must be in [0, 2**64)")
    return seed


def compile_unflatten(structure: Any) -> Callable[[list], Any]:
    """A function that puts a flat list into a signature's structure; of None, one that leaves it.

    The same as `tree.unflatten_as(structure, ...)`, at a fraction of its time.
    """
    if structure is None:
        return lambda columns: columns
    build, count = _compile(structure, 0)

    def unflatten(columns: list) -> Any:
        if len(columns) != count:
            raise ValueError(
                f"The table's signature has {count} columns, but the items have {len(columns)}"
            )
        return build(columns)

    return unflatten


def _compile(nest: Any, first: int) -> tuple[Callable[[list], Any], int]:
    """The function for a nest whose first leaf is number `first`, and the number after its last."""
    if isinstance(nest, Mapping):
        keys = sorted(nest)
        builds, end = _compile_all([nest[key] for key in keys], first)
        return lambda leaves: {key: build(leaves) for key, build in zip(keys, builds)}, end
    if isinstance(nest, (list, tuple)):
        builds, end = _compile_all(nest, first)
        if hasattr(nest, "_fields"):
            return lambda leaves: type(nest)(*[build(leaves) for build in builds]), end
        if isinstance(nest, tuple):
            return lambda leaves: tuple([build(leaves) for build in builds]), end
        return lambda leaves: [build(leaves) for build in builds], end
    return operator.itemgetter(first), first + 1


def _compile_all(nests: Any, first: int) -> tuple[list[Callable[[list], Any]], int]:
    builds = []
    for nest in nests:
        build, first = _compile(nest, first)
        builds.append(build)
    return builds, first
