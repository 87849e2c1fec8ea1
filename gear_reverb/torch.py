"""Batches of a table as a PyTorch dataset. Importing this module imports PyTorch.

For example:

    dataset = gear_reverb.torch.ReplayDataset("localhost:8000", "replay", batch_size=256)
    for batch in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2):
        loss = update(batch.data, batch.weights)
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import tree
from torch.utils import data as torch_data

from gear_reverb.batch_sampler import check_sizes
from gear_reverb.client import Client
from gear_reverb.replay_sample import BATCH_EXTRAS, SampleInfo


class Batch(dict[str, Any]):
    """A batch of tensors; a dict, so that PyTorch's loaders keep it whole. Keys are attributes too.

    `info` is a `SampleInfo` of tensors of shape `[B]`, whose keys are `torch.uint64`; hand
    `batch.info.key.numpy()` to `Client.update_priorities`. `data` is a nest of tensors as
    `Client.batch_sampler` says; text stays a NumPy array. `lengths`, `mask`, `cu_seqlens` and
    `weights` are there if the dataset's options ask for them.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class ReplayDataset(torch_data.IterableDataset):
    """Batches drawn from a table, as `Client.batch_sampler` does it; endless unless limited.

    Give it to a `DataLoader` with `batch_size=None`: its elements are batches already. Tensors
    share the sampler's memory; only what a worker process sends is copied, by PyTorch.

    Every worker process makes a client of its own when it starts to iterate, and the dataset
    itself has none. So workers may be started by spawn and forkserver at any time, but by fork
    (the default on Linux before Python 3.14) only if this process has not used gear_reverb
    before; where it has, workers fail with a `ReverbError` that says so. Then pass
    `DataLoader(..., multiprocessing_context="spawn")`.
    """

    def __init__(
        self,
        server_address: str,
        table: str,
        batch_size: int,
        *,
        prefetch: int = 2,
        timeout: float | None = None,
        ragged: str = "error",
        pad_to: int | None = None,
        beta: float | None = None,
        seed: int | None = None,
        pin_memory: bool = False,
        max_batches: int | None = None,
    ) -> None:
        """Does not connect.

        Args:
          server_address: "host:port".
          table: Name of the table.
          batch_size: Items per batch, B.
          prefetch: Batches that each process may draw before they are asked for.
          timeout: Longest time to wait for a batch, in seconds; None for ever.
          ragged: What to do with items of different lengths: "error", "pad" or "pack".
          pad_to: With "pad", the T of all batches.
          beta: If given, batches have importance weights.
          seed: Makes draws reproducible; each worker draws with a seed of its own made of it.
          pin_memory: Whether to copy batches to page-locked memory, for copies to a GPU, which
            PyTorch must then see. For iterating in this process; with workers, give it to the
            `DataLoader` instead.
          max_batches: Batches of one iteration, the workers' together; None for any number.

        Raises:
          ValueError: If a number is out of range.
        """
        super().__init__()
        check_sizes(batch_size, prefetch, max_batches)
        self._server_address = server_address
        self._table = table
        self._batch_size = batch_size
        self._pin_memory = pin_memory
        self._max_batches = max_batches
        self._seed = seed
        self._options = {
            "prefetch": prefetch,
            "timeout": timeout,
            "ragged": ragged,
            "pad_to": pad_to,
            "beta": beta,
        }

    def __iter__(self) -> Iterator[Batch]:
        """Draws from the server. Errors are those of `batch_sampler`, and end the iteration."""
        worker = torch_data.get_worker_info()
        index, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if self._pin_memory and worker is not None:
            raise ValueError(
                "pin_memory of ReplayDataset is for iterating without workers: with workers, use "
                "DataLoader(..., pin_memory=True)"
            )
        return self._draw(_share(self._max_batches, index, count), _seed(self._seed, index, count))

    def _draw(self, limit: int | None, seed: int | None) -> Iterator[Batch]:
        if limit == 0:
            return
        client = Client(self._server_address)
        with client.batch_sampler(
            self._table, self._batch_size, seed=seed, out="torch", **self._options
        ) as sampler:
            for number, sample in enumerate(sampler, start=1):
                batch = _as_batch(sample)
                yield _pinned(batch) if self._pin_memory else batch
                if number == limit:
                    return


def _as_batch(sample: Any) -> Batch:
    info = SampleInfo(*(_as_tensor(field) for field in sample.info))
    batch = Batch(info=info, data=sample.data)
    for name in BATCH_EXTRAS:
        if getattr(sample, name, None) is not None:
            batch[name] = getattr(sample, name)
    return batch


def _as_tensor(value: Any) -> torch.Tensor:
    """Keys come as NumPy arrays; the tensor shares their memory."""
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _pinned(batch: Batch) -> Batch:
    return Batch(
        tree.map_structure(
            lambda leaf: leaf.pin_memory() if isinstance(leaf, torch.Tensor) else leaf, dict(batch)
        )
    )


def _share(total: int | None, index: int, count: int) -> int | None:
    """Worker `index`'s part of `total` batches."""
    return None if total is None else total // count + (index < total % count)


def _seed(seed: int | None, index: int, count: int) -> int | None:
    """The seed itself for one process, a different one for each of several workers."""
    if seed is None or count == 1:
        return seed
    return int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0])
