"""The native core as Python sees it. Statuses become exceptions (see native/bindings/errors.cc):

INVALID_ARGUMENT → ValueError, RESOURCE_EXHAUSTED → IndexError, UNIMPLEMENTED →
NotImplementedError, DEADLINE_EXCEEDED → gear_reverb.errors.DeadlineExceededError, every other
code → gear_reverb.errors.ReverbError (also a RuntimeError). Blocking calls release the GIL,
and notice Ctrl-C.
Arrays going in are anything `numpy.asarray` takes; arrays coming out own their memory.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__version__: str

def set_errors(reverb_error: type, deadline_exceeded_error: type) -> None: ...
def set_extra_dtypes(dtypes: Sequence[np.dtype]) -> None:
    """ml_dtypes' dtypes; matched to the core's types by name."""

class ItemSelector:
    def __repr__(self) -> str: ...

class FifoSelector(ItemSelector):
    def __init__(self) -> None: ...

class LifoSelector(ItemSelector):
    def __init__(self) -> None: ...

class UniformSelector(ItemSelector):
    def __init__(self) -> None: ...

class PrioritizedSelector(ItemSelector):
    def __init__(self, priority_exponent: float) -> None: ...

class HeapSelector(ItemSelector):
    def __init__(self, min_heap: bool) -> None: ...

def selector_from_proto(serialized_key_distribution_options: bytes) -> ItemSelector: ...

class RateLimiter:
    def __init__(
        self, samples_per_insert: float, min_size_to_sample: int, min_diff: float, max_diff: float
    ) -> None: ...

class TableExtension:
    """Observer of a table; subclasses live in the core."""

class Table:
    def __init__(
        self,
        name: str,
        sampler: ItemSelector,
        remover: ItemSelector,
        max_size: int,
        max_times_sampled: int,
        rate_limiter: RateLimiter,
        extensions: Sequence[TableExtension] = ...,
        signature: bytes | None = None,
        seed: int | None = None,
        on_device: bool = False,
        device_bytes: int = 0,
    ) -> None:
        """`signature`: serialised StructuredValue. `device_bytes`: 0 for the device's default."""
    def name(self) -> str: ...
    def can_sample(self, num_samples: int) -> bool: ...
    def can_insert(self, num_inserts: int) -> bool: ...
    def info(self) -> bytes:
        """Serialised TableInfo."""
    def sample_keys(self, num_samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys u64[n] and probabilities f64[n], without limiter or data: for measurement."""
    def insert_keys(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Items without data: for measurement."""

class Checkpointer:
    """Where and how a server stores its tables."""

def create_default_checkpointer(
    path: str, group: str, fallback_checkpoint_path: str | None
) -> Checkpointer:
    """Checkpoints of dm-reverb are restored too."""

def export_checkpoint(path: str, directory: str) -> str:
    """Writes a checkpoint to `directory` as dm-reverb has them; the new one's path."""

class Server:
    def __init__(
        self, priority_tables: Sequence[Table], port: int, checkpointer: Checkpointer | None = None
    ) -> None:
        """Port 0: any free port. Restores the newest checkpoint, if there is one."""
    @property
    def port(self) -> int: ...
    def Stop(self) -> None: ...
    def Wait(self) -> bool:
        """Until stopped; False then, as in Reverb. Python's signal handlers run meanwhile."""

class Client:
    def __init__(self, server_address: str) -> None: ...
    def data_plane(self) -> str:
        """ "in-process", "shared-memory" or "grpc" (connects if needed)."""
    def known_data_plane(self) -> str:
        """The same without connecting; empty if not known."""
    def NewWriter(
        self, chunk_length: int, max_timesteps: int, delta_encoded: bool, max_in_flight_items: int
    ) -> Writer: ...
    def NewTrajectoryWriter(
        self,
        chunker_options: ChunkerOptions,
        validate_items: bool,
        max_in_flight_bytes: int = ...,
    ) -> TrajectoryWriter: ...
    def NewStructuredWriter(self, configs: list[tuple]) -> StructuredWriter:
        """Of `gear_reverb._patterns.Config`s."""
    def NewSampler(
        self, table: str, max_samples: int, buffer_size: int, timeout_ms: int = -1
    ) -> Sampler:
        """At most `max_samples` samples, `buffer_size` in flight; timeout < 0: none."""
    def NewBatchSampler(
        self,
        table: str,
        batch_size: int,
        prefetch: int,
        ragged: str,
        pad_to: int | None,
        seed: int | None,
        max_bytes: int,
        device: str | None,
        float32_to: str,
        uint8_to: str,
        draw: str,
    ) -> BatchSampler:
        """`ragged`: "error", "pad" or "pack". `device`: "cpu" for the twin, "cuda:N", or None.
        Columns of two dtypes may be cast, on a device: to "bfloat16" or "float16"; ""."""
    def NewFixedBatchSampler(
        self,
        table: str,
        batch_size: int,
        ragged: str,
        pad_to: int | None,
        seed: int | None,
        max_bytes: int,
        device: str,
        float32_to: str,
        uint8_to: str,
        beta: float | None,
        top_k: bool,
    ) -> FixedBatchSampler: ...
    def SampleBatch(
        self,
        table: str,
        batch_size: int,
        ragged: str,
        pad_to: int | None,
        max_bytes: int,
        timeout: float | None,
        beta: float | None,
    ) -> tuple:
        """One batch, as `BatchSampler.Next`."""
    def MutatePriorities(
        self,
        table: str,
        update_keys: np.ndarray,
        update_priorities: np.ndarray,
        delete_keys: np.ndarray,
        timeout_ms: int | None = None,
    ) -> None:
        """u64[n], f64[n], u64[m]."""
    def Reset(self, table: str, timeout_ms: int | None = None) -> None: ...
    def Checkpoint(self, timeout_ms: int | None = None) -> str: ...
    def FetchSignature(self, table: str, timeout_ms: int | None) -> None:
        """Has the signature ready for writers; of an unknown table nothing is said."""
    def ServerInfo(self, timeout_ms: int) -> list[bytes]:
        """Serialised TableInfos; timeout <= 0: none."""

class Sampler:
    NUM_INFO_TENSORS: (
        int  # 5: key u64, probability f64, table_size i64, priority f64, times_sampled i32
    )
    def GetNextTimestep(self) -> tuple[list[np.ndarray], bool]:
        """Info scalars and one step of every column; whether it is its trajectory's last.
        StopIteration when `max_samples` were given. ValueError if not separable into timesteps."""
    def GetNextTrajectory(self) -> list[np.ndarray]:
        """Info scalars and whole columns. StopIteration when `max_samples` were given."""
    def Close(self) -> None: ...

class BatchSampler:
    def Next(self, timeout: float | None, beta: float | None) -> tuple:
        """(columns, (info, lengths, mask, cu_seqlens, weights)): a list of arrays; key u64[B],
        probability f64[B], table_size i64[B], priority f64[B], times_sampled i32[B]; then int32[B],
        bool[B, T], int32[B + 1], each None or a list by column where columns differ; f32[B] or
        None. `timeout` in seconds, None for ever. ReverbError once closed. On a GPU all but
        the info and text are `DeviceArray`s; of draws by a device key, probability and priority
        too, and times_sampled is None."""
    def DeviceStats(self) -> dict[str, Any] | None:
        """Of the device, as `gear_reverb.cuda.stats` has it; None without one."""
    def WhyHostDraws(self) -> str:
        """Though the device should draw; "" if it does, or should not."""
    def Close(self) -> None: ...

class FixedBatchSampler:
    """`stream`: a cudaStream_t, which the CPU ignores. Calls but Close: ReverbError once closed."""

    def Prepare(self, timeout: float | None, stream: int) -> None: ...
    def Enqueue(self, stream: int) -> None: ...
    def Arrays(self) -> tuple | None:
        """As `BatchSampler.Next`, without table_size; None before the first Prepare."""
    def TableSize(self) -> int: ...
    def Close(self) -> None: ...

class DeviceArray:
    """An array on a GPU. Frameworks take its memory over by DLPack; it is used again when the last
    that shares it is gone."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """What the stream does after this call finds the array written."""
    def want_fence(self) -> None:
        """The memory is used again after a fence, besides: for frameworks that give it back before
        their work with it is done."""
    @property
    def fence_wanted(self) -> bool:
        """Whether memory of such arrays of the GPU waits for one."""
    def pass_fence(self, wait: Callable[[int], object]) -> None:
        """`wait` has the stream that it is given wait for all of the framework's work."""

class HostCopies:
    """Copies of keys and priorities from a GPU, on a stream of their own."""

    def __init__(self, gpu: int) -> None: ...
    def start(self, array: Any, between: int | None) -> HostCopy:
        """Of an array of one axis, by DLPack; it is kept until the copy is there. The copy comes
        after what the stream `between` has been given, and before what it is given from now on."""

class HostCopy:
    @property
    def done(self) -> bool: ...
    def numpy(self) -> np.ndarray:
        """Waits for it."""

class BlockSampler:
    """Draws items, many at a time, for the datasets."""

    def __init__(
        self,
        client: Client,
        table: str,
        *,
        form: str,
        size: int,
        block_bytes: int,
        prefetch: int,
        ahead: int,
        max_samples: int,
        max_samples_per_stream: int,
        rate_limiter_timeout_ms: int,
    ) -> None:
        """Blocks of up to `size` items and about `block_bytes`.

        `form` is "items", "steps" (items cut into steps), or, of exactly `size` items but for the
        last, "stacked" or "padded". `prefetch` blocks are gathered ahead, `ahead` more items
        sampled. -1 for no limit.
        """
    def next(self, wait_ms: int) -> tuple[tuple, list[np.ndarray], list] | None:
        """`(info, columns, lengths)`: five arrays `[items]`; the columns; and for each the items'
        lengths, int32 `[items]`, if these lie one after another, or None if they are stacked.

        None if there is nothing in time; nothing is lost. StopIteration at the end, and once
        closed.
        """
    def close(self) -> None:
        """Ends a waiting call within its `wait_ms`."""

class ChunkerOptions: ...

class ConstantChunkerOptions(ChunkerOptions):
    def __init__(self, max_chunk_length: int, num_keep_alive_refs: int) -> None: ...
    def __eq__(self, other: object) -> bool: ...

class AutoTunedChunkerOptions(ChunkerOptions):
    def __init__(self, num_keep_alive_refs: int, throughput_weight: float = 1.0) -> None: ...
    def __eq__(self, other: object) -> bool: ...

class WeakCellRef:
    @property
    def expired(self) -> bool: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    def numpy(self) -> np.ndarray:
        """A copy of the step; ReverbError if expired."""

class ColumnSteps:
    """What TrajectoryColumn derives from."""

    is_squeezed: bool
    def __init__(self, references: tuple, squeeze: bool, /) -> None: ...
    @property
    def _references(self) -> tuple: ...

class StepLog:
    """The steps of an episode; each has a reference, or None, per column.

    Only the last `capacity` steps are kept; earlier ones count, and read as None.
    """

    capacity: int
    def __init__(self, column_type: type[ColumnSteps], /) -> None: ...
    def add(self, row: Sequence, /) -> None: ...
    def skip(self, count: int, /) -> None:
        """Adds steps that are not kept."""
    def merge_into_last(self, row: Sequence, /) -> None:
        """Adds the references of a later part of the same step, which is as wide."""
    def widen(self, width: int, /) -> None: ...
    def clear(self) -> None: ...
    def get(self, step: int, column: int, /) -> Any | None:
        """IndexError if the log has no such step or column."""
    def __len__(self) -> int: ...
    @property
    def first_kept(self) -> int:
        """Index of the oldest step that items can still refer to."""

class ColumnView:
    """A column of the log. Derived classes have `_getitem`, for all but the commonest indices."""

    def __init__(self, log: StepLog, column: int, /) -> None: ...
    def __getitem__(self, index: Any) -> ColumnSteps: ...

class FlattenPlan:
    def flatten(self, nest: Any, /) -> list | None:
        """The leaves, None where the row has no leaf; None if the nest looks different."""

def make_flatten_plan(
    look: tuple | None, leaf_types: set[type], order: Sequence[int], width: int
) -> FlattenPlan:
    """See gear_reverb/_columns.py; leaf i goes to place `order[i]` of a row."""

def insert_batch(
    client: Client,
    table: str,
    columns: Sequence[Any],
    priorities: np.ndarray,
    timeout_ms: int = -1,
) -> np.ndarray: ...
def append_batch(
    writer: TrajectoryWriter, data: Sequence[Any], num_steps: int, keep: int
) -> list[tuple[WeakCellRef | None, ...]]: ...

class TrajectoryWriter:
    # Positional arguments only.
    def Append(self, data: Sequence[Any | None], /) -> tuple[WeakCellRef | None, ...]: ...
    def AppendPartial(self, data: Sequence[Any | None], /) -> tuple[WeakCellRef | None, ...]: ...
    def CreateItem(self, table: str, priority: float, columns: list[ColumnSteps], /) -> None: ...
    def ConfigureChunker(self, column: int, options: ChunkerOptions) -> None: ...
    def Flush(self, ignore_last_num_items: int, timeout_ms: int) -> None:
        """timeout < 0: none."""
    def EndEpisode(self, clear_buffers: bool, timeout_ms: int | None) -> None: ...
    def Close(self) -> None: ...
    @property
    def max_num_keep_alive_refs(self) -> int: ...
    @property
    def episode_steps(self) -> int: ...

class StructuredWriter:
    def Append(self, data: list[Any | None]) -> None:
        """One value per column; columns that no config uses are not looked at."""
    def AppendPartial(self, data: list[Any | None]) -> None: ...
    def Flush(self, ignore_last_num_items: int, timeout_ms: int | None) -> None:
        """timeout_ms None: no limit; < 1: now."""
    def EndEpisode(self, clear_buffers: bool, timeout_ms: int | None) -> None: ...
    @property
    def step_is_open(self) -> bool: ...

class Writer:
    def Append(self, data: Sequence[Any]) -> None: ...
    def AppendSequence(self, data: Sequence[Any]) -> None: ...
    def CreateItem(self, table: str, num_timesteps: int, priority: float) -> None: ...
    def Flush(self, timeout_ms: int | None = None) -> None: ...
    def Close(self, retry_on_unavailable: bool = True) -> None: ...

def cuda_is_built() -> bool: ...
def cuda_why_not() -> str:
    """Why no GPU can be used; "" if one can."""

def cuda_gpus() -> list[dict[str, Any]]:
    """Of each: index, name, compute_capability, multiprocessors, memory_bytes,
    registers_read_only."""

def cuda_open_gpus() -> list[dict[str, Any]]:
    """Of every GPU that is in use, as `gear_reverb.cuda.stats` has it."""

def cuda_self_test(gpu: int, seed: int, rounds: int, large: bool = True) -> list[str]:
    """What differed from the CPU's twin; `large`: with rows of megabytes too."""

def cuda_check_selection(gpu: int | None, seed: int, slots: int) -> list[str]:
    """What of random selections differed from the CPU's twin (None: the twin itself)."""

def cuda_check_draws(gpu: int | None, seed: int, rounds: int) -> list[str]:
    """The same of what turns drawn slots into rows of a gather, and of importance weights."""

def cuda_measure_draw(
    gpu: int | None, strategy: str, items: int, draws: int, repeats: int
) -> float:
    """Seconds for so many draws; `strategy` is a selector's name, such as "MinHeap"."""

def cuda_measure_top(gpu: int | None, strategy: str, items: int, k: int, repeats: int) -> float:
    """Seconds for the first `k` items of an ordered strategy."""

def cuda_measure_update(gpu: int | None, items: int, updates: int, repeats: int) -> float:
    """Seconds for an update of so many priorities, from host memory."""

def cuda_measure_gather(
    gpu: int,
    way: str,
    place: str,
    items: int,
    columns: list[tuple[int, int]],
    least: float,
    repeats: int,
) -> float:
    """Bytes per second of a gather of items with columns (pieces, bytes of a piece).

    `way`: "lanes", "bulk" or "engine"; `place`: "host" or "device"; `least`: of the longest
    items' length.
    """

def cuda_measure_copy(gpu: int, place: str, bytes: int, repeats: int) -> float:
    """Bytes per second of one copy to the device from "host" or "device"."""

def cuda_versions() -> tuple[int, int]:
    """Of the driver and of the runtime: 1000 * major + 10 * minor."""
