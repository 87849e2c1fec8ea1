"""Checks and times batches of items of different lengths, filled up, for gpu_check.py.

The workload is W4: 64 to 1024 tokens with their log probabilities and masks, in one chunk each.
"""

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from gpu_batches import BATCHES, of_sampler, shown
from gpu_equal import compare, keep_keys
from gpu_tables import TABLE, client_of_none

import gear_reverb

LENGTHS = (64, 1025)
STEP_BYTES = 9


@contextlib.contextmanager
def a_client(items: int, rng: np.random.Generator) -> Iterator[tuple[gear_reverb.Client, float]]:
    """With the mean bytes of an item."""
    lengths = rng.integers(*LENGTHS, items)
    with client_of_none(items) as client:
        for length in lengths:
            columns = {
                "logprob": rng.standard_normal((1, length), np.float32),
                "mask": rng.integers(0, 2, (1, length), np.uint8),
                "token": rng.integers(0, 50_000, (1, length), np.int32),
            }
            client.insert_batch(TABLE, columns, 1.0)
        yield client, float(lengths.mean()) * STEP_BYTES


def is_as_without_a_device(device: str, out: str, small: bool) -> dict[str, int]:
    """Drawn by the host, and by the device as its twin draws them."""
    seed, compared = secrets.randbits(32), 0
    keep_keys(out)
    with a_client(50 if small else 1000, np.random.default_rng(seed)) as (client, _):
        for draw, others in (("host", {}), ("device", {"device": "cpu", "draw": "device"})):
            options = {"ragged": "pad", "seed": seed}
            with (
                client.batch_sampler(TABLE, 64, **options, **others) as other,
                client.batch_sampler(
                    TABLE, 64, device=device, out=out, draw=draw, **options
                ) as sampler,
            ):
                compared += sum(compare(next(other), next(sampler)) for _ in range(10))
                why = sampler.device_stats()["why_host_draws"]
                assert not why, why
    return {"seed": seed, "bytes": compared}


def rates(device: str, out: str, copy_rate: float, small: bool) -> Iterator[dict[str, Any]]:
    """The items' own bytes count, of so many as are drawn on average, and no padding."""
    with a_client(50 if small else 4096, np.random.default_rng()) as (client, mean_bytes):
        for batch in (2,) if small else BATCHES:
            for draw in ("host", "device"):
                options = {"device": device, "out": out, "draw": draw, "ragged": "pad"}
                timed = of_sampler(client, batch, batch * mean_bytes, small, options)
                rate = timed["bytes_per_second"]
                print(f"   W4 B={batch}, the {draw} draws: {shown(rate, copy_rate)}")
                yield {"workload": "W4", "batch": batch, "draw": draw} | timed
