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

_DOCUMENTATION = {
    AutoTunedChunkerOptions: "Chunks of a column whose length tunes itself.",
    BatchSampler: "Draws batches, ahead of their use; see `gear_reverb.BatchSampler`.",
    BlockSampler: "Draws items as the datasets want them: whole, cut into steps, or in batches.",
    Checkpointer: "Stores a server's tables and loads them.",
    ChunkerOptions: "How the steps of a column are cut into chunks.",
    Client: "Connections to one server; see `gear_reverb.Client`.",
    ConstantChunkerOptions: "Chunks of a column of one length, `max_chunk_length` steps.",
    FixedBatchSampler: "Draws into always the same arrays; see `gear_reverb.FixedBatchSampler`.",
    Sampler: "Samples items one after another; see `gear_reverb.Client.sample`.",
    Server: "Serves tables; see `gear_reverb.Server`.",
    StructuredWriter: "Makes items by patterns; see `gear_reverb.structured.StructuredWriter`.",
    TrajectoryWriter: "Writes items column by column; see `gear_reverb.TrajectoryWriter`.",
    WeakCellRef: "A reference to one step of one column, which its writer may drop.",
    Writer: "Writes items of the last steps; see `gear_reverb.Writer`.",
}
for _type, _text in _DOCUMENTATION.items():
    _type.__doc__ = _text
create_default_checkpointer.__doc__ += "\nSee `checkpointers_lib.DefaultCheckpointer`."
export_checkpoint.__doc__ += (
    "\nWrites a checkpoint below `directory` that dm-reverb restores; returns its path."
)

_native.set_errors(errors.ReverbError, errors.DeadlineExceededError)
_native.set_extra_dtypes(list(_dtypes.EXTRA_DTYPES))
