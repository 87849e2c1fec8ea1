"""The native core under the module name that Reverb gives it.

Importing this module also hands the core the Python types it needs: the exception classes that
statuses become, and the dtypes that NumPy itself lacks (bfloat16, float8), where `ml_dtypes` is
installed. And it has the core's errors name arguments.
"""

from gear_reverb import _arguments, _dtypes, _native, errors

_arguments.name_arguments(_native)  # Before functions are taken from there.

from gear_reverb._native import (  # noqa: E402
    AutoTunedChunkerOptions,
    BatchSampler,
    BlockSampler,
    Checkpointer,
    ChunkerOptions,
    Client,
    ConstantChunkerOptions,
    FifoSelector,
    FixedBatchSampler,
    HeapSelector,
    ItemSelector,
    LifoSelector,
    PrioritizedSelector,
    RateLimiter,
    Sampler,
    Server,
    StructuredWriter,
    Table,
    TableExtension,
    TrajectoryWriter,
    UniformSelector,
    WeakCellRef,
    Writer,
    append_batch,
    create_default_checkpointer,
    export_checkpoint,
    insert_batch,
    selector_from_proto,
)

__all__ = [
    "AutoTunedChunkerOptions",
    "BatchSampler",
    "BlockSampler",
    "Checkpointer",
    "ChunkerOptions",
    "Client",
    "ConstantChunkerOptions",
    "FifoSelector",
    "FixedBatchSampler",
    "HeapSelector",
    "ItemSelector",
    "LifoSelector",
    "PrioritizedSelector",
    "RateLimiter",
    "Sampler",
    "Server",
    "StructuredWriter",
    "Table",
    "TableExtension",
    "TrajectoryWriter",
    "UniformSelector",
    "WeakCellRef",
    "Writer",
    "append_batch",
    "create_default_checkpointer",
    "export_checkpoint",
    "insert_batch",
    "selector_from_proto",
]

_native.set_errors(errors.ReverbError, errors.DeadlineExceededError)
_native.set_extra_dtypes(list(_dtypes.EXTRA_DTYPES))
