"""Checks batches that the host draws and a device gathers, for gpu_check.py."""

import contextlib
import importlib
import secrets
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gpu_tables import client_of_none

import gear_reverb
from gear_reverb import selectors


def as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get"):  # CuPy
        return array.get()
    if hasattr(array, "cpu"):  # PyTorch
        array = array.cpu()
        if array.dtype == importlib.import_module("torch").bfloat16:
            return array.float().numpy()
        return array.numpy()
    return np.asarray(array)


def keep_keys(out: str) -> None:
    """Has JAX take arrays of 64 bits."""
    if out == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)


def compare(a: gear_reverb.ReplayBatch, b: gear_reverb.ReplayBatch) -> int:
    """How many bytes are equal; raises if any are not."""
    pairs = [*zip(a.data, b.data)]
    for name in ("weights", "lengths", "mask", "cu_seqlens"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        if x is not None:
            pairs.append((x, y))
    pairs += [(getattr(a.info, k), getattr(b.info, k)) for k in ("key", "priority", "probability")]
    for x, y in pairs:
        np.testing.assert_array_equal(as_numpy(x), as_numpy(y))
    return sum(x.nbytes for x, _ in pairs)


def batches_are_equal(device: str, out: str) -> dict[str, int]:
    """A server, its tables and samplers, with and without the device, of equal seeds."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    compared = 0
    for placement in ("host", "device"):
        with a_client(rng, placement) as client:
            for ragged in ("pad", "pack"):
                options = {"ragged": ragged, "seed": seed, "beta": 0.6, "prefetch": 2}
                with (
                    client.batch_sampler("t", 64, **options) as plain,
                    client.batch_sampler("t", 64, device=device, out=out, **options) as other,
                ):
                    compared += sum(compare(next(plain), next(other)) for _ in range(10))
    return {"seed": seed, "bytes": compared}


@contextlib.contextmanager
def a_client(
    rng: np.random.Generator, placement: Literal["host", "device"]
) -> Iterator[gear_reverb.Client]:
    """Of a table of items of 1 to 300 steps, three columns of different kinds."""
    with client_of_none(1000, placement, selectors.Prioritized(0.7)) as client:
        fill(client, rng)
        yield client


def fill(client: gear_reverb.Client, rng: np.random.Generator) -> None:
    with client.trajectory_writer(num_keep_alive_refs=300) as writer:
        for _ in range(200):
            steps = rng.integers(1, 300)
            for _ in range(steps):
                writer.append(
                    [
                        rng.standard_normal(11, np.float32),
                        rng.integers(0, 256, (7, 9), np.uint8),
                        rng.integers(0, 2**31, (), np.int32),
                    ]
                )
            columns = [column[-steps:] for column in writer.history]
            writer.create_item("t", float(rng.uniform(0.1, 5)), columns)
            writer.end_episode()
