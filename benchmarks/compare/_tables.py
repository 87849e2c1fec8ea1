"""Tables of gear_reverb and of dm-reverb, filled alike; both have the same interface."""

import concurrent.futures
import importlib
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from _workloads import Workload

TABLE = "table"
_MODULES = {"gear_reverb": "gear_reverb", "dm-reverb": "reverb"}
_FLUSH_BYTES = 16 << 20
_FLUSH_ITEMS = 200


def load(implementation: str) -> Any:
    """The module of `implementation`, "gear_reverb" or "dm-reverb"."""
    return importlib.import_module(_MODULES[implementation])


def make_table(reverb: Any, workload: Workload, name: str = TABLE, **options: Any) -> Any:
    """A table with the workload's signature: uniform, first in first out, as large as needed."""
    specs = reverb
    if reverb.__name__ == "reverb":
        import tensorflow as specs
    options = {
        "sampler": reverb.selectors.Uniform(),
        "remover": reverb.selectors.Fifo(),
        "max_size": workload.items,
        "rate_limiter": reverb.rate_limiters.MinSize(1),
        "signature": workload.signature(specs),
        **options,
    }
    return reverb.Table(name=name, **options)


def steps_of(item: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    length = len(next(iter(item.values())))
    return [{name: values[t] for name, values in item.items()} for t in range(length)]


class Filler:
    """Writes items with a TrajectoryWriter, one chunk per column and item.

    Use as a context. Chunks as long as the items are what suits both sides best: neither has to
    decode, or send, steps that the item does not have.
    """

    def __init__(self, client: Any, workload: Workload):
        self._workload = workload
        self._steps = itertools.cycle([steps_of(item) for item in workload.pool()])
        self._writer = client.trajectory_writer(num_keep_alive_refs=workload.steps)
        for column in workload.columns:
            self._writer.configure(
                (column.name,), num_keep_alive_refs=workload.steps, max_chunk_length=workload.steps
            )
        self._flush_items = max(1, min(_FLUSH_ITEMS, _FLUSH_BYTES // workload.item_bytes))

    def __enter__(self) -> "Filler":
        self._writer.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self._writer.__exit__(*exception)

    def write(self, count: int, table: str = TABLE) -> None:
        """Returns when the server has confirmed all of them."""
        writer, names = self._writer, [column.name for column in self._workload.columns]
        for index, steps in enumerate(itertools.islice(self._steps, count), start=1):
            for step in steps:
                writer.append(step)
            history = writer.history
            item = {name: history[name][-len(steps) :] for name in names}
            writer.create_item(table, 1.0, item)
            if self._workload.ragged:
                writer.end_episode()  # Cuts the chunk, whose length would else be the longest's.
            elif index % self._flush_items == 0:
                writer.flush(block_until_num_items=self._flush_items)
        writer.flush()


def fill(client: Any, workload: Workload, count: int, tables: Iterable[str] = (TABLE,)) -> None:
    # The end of an episode waits for the server, dm-reverb's for long: then several write at once.
    writers = 8 if workload.ragged else 1

    def write(share: int) -> None:
        with Filler(client, workload) as filler:
            for table in tables:
                filler.write(share, table)

    shares = [(count + i) // writers for i in range(writers)]
    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, shares))


def require_plane(client: Any, plane: str) -> None:
    """Makes sure that data takes the way that is measured.

    Raises:
      RuntimeError: If it takes another one.
    """
    client.server_info()  # The way is chosen with the first call.
    if client.data_plane != plane:
        raise RuntimeError(f"data takes the way {client.data_plane!r}, not {plane!r}")
