"""gear_reverb: a replay memory with Reverb's interface, and no TensorFlow.

A `Server` hosts `Table`s of items; a `Client` writes steps and items to it, samples items from it,
and changes their priorities.
"""

from gear_reverb import item_selectors as selectors
from gear_reverb import rate_limiters
from gear_reverb._version import __version__
from gear_reverb.client import Client, Writer
from gear_reverb.errors import DeadlineExceededError, ReverbError
from gear_reverb.platform.default import checkpointers
from gear_reverb.replay_sample import ReplaySample, SampleInfo
from gear_reverb.server import Server, Table
from gear_reverb.tensor_spec import BoundedTensorSpec, TensorSpec
from gear_reverb.trajectory_writer import TrajectoryColumn, TrajectoryWriter

__all__ = [
    "BoundedTensorSpec",
    "Client",
    "DeadlineExceededError",
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
    "rate_limiters",
    "selectors",
]
