"""TorchRL's replay buffers."""

import os
import sys
import warnings
from typing import Any

import numpy as np
import torch
from _workloads import Workload


def _load_native_part() -> None:
    """Binds TorchRL's native module lazily.

    No release of TorchRL was built for this PyTorch: one autograd function in its module, which
    replay buffers do not use, refers to a symbol that PyTorch has in another form. Bound lazily the
    module loads, and the segment trees of its prioritized buffers are the native ones.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags & ~os.RTLD_NOW | os.RTLD_LAZY)
    try:
        import torchrl._torchrl  # noqa: F401
    finally:
        sys.setdlopenflags(flags)


warnings.simplefilter("ignore")
_load_native_part()

from tensordict import TensorDict  # noqa: E402
from torchrl.data import (  # noqa: E402
    LazyTensorStorage,
    TensorDictPrioritizedReplayBuffer,
    TensorDictReplayBuffer,
)

PRIORITY = "td_error"


def replay_buffer(workload: Workload) -> Any:
    """Uniform; `sample()` draws the workload's batch."""
    return TensorDictReplayBuffer(
        storage=LazyTensorStorage(workload.items), batch_size=workload.batch
    )


def prioritized_buffer(items: int, batch: int, alpha: float, beta: float) -> Any:
    return TensorDictPrioritizedReplayBuffer(
        alpha=alpha,
        beta=beta,
        priority_key=PRIORITY,
        storage=LazyTensorStorage(items),
        batch_size=batch,
    )


def as_tensordict(block: dict[str, np.ndarray]) -> TensorDict:
    """Shares the arrays' memory; the storage copies it."""
    items = len(next(iter(block.values())))
    return TensorDict({name: torch.from_numpy(values) for name, values in block.items()}, [items])
