"""gear_reverb: a replay memory with Reverb's interface, and no TensorFlow.

A `Server` hosts `Table`s of items; a `Client` writes steps and items to it, samples items from it,
and changes their priorities.
"""

import importlib
import sys
from typing import Any

from gear_reverb import item_selectors as selectors
from gear_reverb import rate_limiters
from gear_reverb._version import __version__
from gear_reverb.batch_sampler import BatchSampler
from gear_reverb.client import Client, Writer
from gear_reverb.errors import DeadlineExceededError, ReverbError
from gear_reverb.fixed_batch_sampler import FixedBatchSampler
from gear_reverb.platform.default import checkpointers
from gear_reverb.replay_sample import ReplayBatch, ReplaySample, SampleInfo
from gear_reverb.server import Server, Table
from gear_reverb.tensor_spec import BoundedTensorSpec, TensorSpec
from gear_reverb.trajectory_writer import TrajectoryColumn, TrajectoryWriter

__all__ = [
    "BatchSampler",
    "BoundedTensorSpec",
    "Client",
    "DeadlineExceededError",
    "FixedBatchSampler",
    "ReplayBatch",
    "ReplaySample",
    "ReverbError",
    "SampleInfo",
    "Server",
    "Table",
    "TensorSpec",
    "TrajectoryColumn",
    "TrajectoryWriter",
    "Writer",
    "__version__",
    "checkpointers",
    "install_as_reverb",
    "rate_limiters",
    "selectors",
    "structured",
]

# Imported when first asked for: they need TensorFlow, or are slow to import.
_LAZY = {
    "PatternDataset": "pattern_dataset",
    "TFClient": "tf_client",
    "TimestepDataset": "timestep_dataset",
    "TrajectoryDataset": "trajectory_dataset",
    "install_as_reverb": "_alias",
}
_LAZY_MODULES = frozenset(["cc", "cuda", "server_executable", "structured_writer", *_LAZY.values()])
_ALIASES = {"structured": "structured_writer"}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name) or _ALIASES.get(name, name)
    if module not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = importlib.import_module(f"{__name__}.{module}")
        if name in _LAZY:
            value = getattr(value, name)
    except ImportError as error:
        # `from gear_reverb import name` tells the reason; `hasattr` and `inspect` go on without.
        if sys._getframe(1).f_code.co_name == "_handle_fromlist":
            raise
        raise AttributeError(f"{__name__}.{name} cannot be imported: {error}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES, *_ALIASES})
