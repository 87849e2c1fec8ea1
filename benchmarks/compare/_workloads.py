"""What the benchmarks move: the same items for every side, and how their bytes are counted."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

_POOL_BYTES = 32 << 20  # Different items, at most: generating noise takes longer than writing it.


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of an item: `shape` is that of a step."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def step_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclasses.dataclass(frozen=True)
class Workload:
    """Items of `min_steps` to `steps` steps, in a table of `items`, drawn in batches of `batch`.

    Items do not overlap. Their payload is noise, which no compression shortens.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    steps: int
    batch: int
    items: int
    min_steps: int = 0  # 0: all have `steps`.

    @property
    def ragged(self) -> bool:
        return 0 < self.min_steps < self.steps

    @property
    def step_bytes(self) -> int:
        return sum(column.step_bytes for column in self.columns)

    @property
    def item_bytes(self) -> int:
        """Payload of one item; of the longest, if they differ in length."""
        return self.step_bytes * self.steps

    @property
    def batch_bytes(self) -> int:
        """Payload of a batch whose items all have `steps` steps."""
        return self.item_bytes * self.batch

    def signature(self, library: Any, time_axis: bool = True) -> dict[str, Any]:
        """Specs of `library`, gear_reverb or tensorflow, for a table of such items."""
        steps = (None if self.ragged else self.steps,) if time_axis else ()
        return {
            column.name: library.TensorSpec(
                steps + column.shape, _dtype_for(library, column.dtype), column.name
            )
            for column in self.columns
        }

    def pool(self, seed: int = 0) -> list[dict[str, np.ndarray]]:
        """Some different items, arrays of shape [steps, ...] by column; repeat them to fill."""
        rng = np.random.default_rng(seed)
        count = max(4, min(64, self.items, _POOL_BYTES // self.item_bytes))
        lengths = [self.steps] * count
        if self.ragged:
            lengths = rng.integers(self.min_steps, self.steps, endpoint=True, size=count)
        return [self._item(int(length), rng) for length in lengths]

    def repeat(self, count: int) -> Iterator[dict[str, np.ndarray]]:
        """`count` items, the pool over and over."""
        pool = self.pool()
        for index in range(count):
            yield pool[index % len(pool)]

    def _item(self, steps: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {
            column.name: _noise((steps, *column.shape), column.dtype, rng)
            for column in self.columns
        }


def _noise(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape, dtype)
    return rng.integers(0, min(np.iinfo(dtype).max, 50_000), size=shape, dtype=dtype)


def _dtype_for(library: Any, dtype: str) -> Any:
    """TensorFlow names types by attributes, everybody else takes NumPy's."""
    return getattr(library, dtype) if hasattr(library, "as_dtype") else np.dtype(dtype)


SMALL = Workload(
    "small",
    "transitions, 2 steps of 4 floats",
    (Column("x", (4,), "float32"),),
    steps=2,
    batch=256,
    items=100_000,
)
KIB_64 = Workload(
    "64KiB", "64 KiB, 16 steps", (Column("x", (1024,), "float32"),), steps=16, batch=32, items=4096
)
MIB_1 = Workload(
    "1MiB", "1 MiB, 16 steps", (Column("x", (16384,), "float32"),), steps=16, batch=32, items=512
)
FRAMES = Workload(
    "frames",
    "frames, 20 steps of 84x84x4 u8",
    (Column("x", (84, 84, 4), "uint8"),),
    steps=20,
    batch=32,
    items=768,
)
# W4: rollouts of a language model.
RAGGED = Workload(
    "ragged",
    "rollouts of 64 to 1024 tokens",
    (Column("tokens", (), "int32"), Column("logprob", (), "float32"), Column("mask", (), "uint8")),
    steps=1024,
    batch=256,
    items=2048,
    min_steps=64,
)

WORKLOADS = {w.name: w for w in (SMALL, KIB_64, MIB_1, FRAMES, RAGGED)}
EVEN = (SMALL, KIB_64, MIB_1, FRAMES)
