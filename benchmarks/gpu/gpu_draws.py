"""Checks and times batches that a device draws by itself, for gpu_check.py."""

import contextlib
import importlib
import secrets
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gpu_batches import settle
from gpu_equal import compare, keep_keys
from gpu_tables import client_of_none
from gpu_timing import finish_of, seconds_of_one

import gear_reverb
from gear_reverb import selectors

STEPS = 12


@contextlib.contextmanager
def a_client(
    items: int, placement: Literal["host", "device"] = "host", sampler: Any = None
) -> Iterator[gear_reverb.Client]:
    """Of a server with a table of so many items, all alike; prioritized unless told otherwise."""
    with client_of_none(items, placement, sampler or selectors.Prioritized(0.7)) as client:
        add(client, np.random.default_rng(), items)
        yield client


def add(client: gear_reverb.Client, rng: np.random.Generator, count: int) -> np.ndarray:
    columns = [
        rng.standard_normal((count, STEPS, 11), np.float32),
        rng.integers(0, 256, (count, STEPS, 7, 9), np.uint8),
        rng.integers(0, 2**31, (count, STEPS), np.int32),
    ]
    return client.insert_batch("t", columns, rng.uniform(0.1, 5, count))


def draws_are_those_of_the_twin(device: str, out: str, placement: str) -> dict[str, int]:
    """Batches of equal seeds, drawn by the device and by the twin from a table that changes."""
    seed, compared = secrets.randbits(32), 0
    rng = np.random.default_rng(seed)
    keep_keys(out)
    with a_client(3000, placement) as client:
        options = {"draw": "device", "seed": seed, "beta": 0.6, "prefetch": 0}
        with (
            client.batch_sampler("t", 64, device="cpu", **options) as twin,
            client.batch_sampler("t", 64, device=device, out=out, **options) as other,
        ):
            for _ in range(30):
                keys = add(client, rng, 100)
                client.mutate_priorities("t", {int(keys[0]): 9.0}, deletes=[int(keys[1])])
                compared += compare(next(twin), next(other))
            why = other.device_stats()["why_host_draws"]
            assert not why, why
    return {"seed": seed, "bytes": compared}


def first_items_are_those_of_the_twin(device: str, out: str) -> dict[str, int]:
    """The highest priorities' items of a table that changes."""
    seed, compared = secrets.randbits(32), 0
    rng = np.random.default_rng(seed)
    keep_keys(out)
    with a_client(3000, sampler=selectors.MaxHeap()) as client:
        options = {"draw": "top_k", "prefetch": 0}
        with (
            client.batch_sampler("t", 64, device="cpu", **options) as twin,
            client.batch_sampler("t", 64, device=device, out=out, **options) as other,
        ):
            for _ in range(10):
                add(client, rng, 100)
                compared += compare(next(twin), next(other))
    return {"seed": seed, "bytes": compared}


def replays_are_those_of_the_twin(device: str, out: str) -> dict[str, int]:
    """The same by a CUDA graph that is captured once; on the CPU, by the calls it consists of."""
    seed, compared = secrets.randbits(32), 0
    rng = np.random.default_rng(seed)
    with a_client(3000) as client:
        options = {"seed": seed, "beta": 0.6}
        with (
            client.fixed_batch_sampler("t", 64, device="cpu", **options) as twin,
            client.fixed_batch_sampler("t", 64, device=device, out=out, **options) as other,
        ):
            replay = None
            for _ in range(30):
                add(client, rng, 100)
                twin.prepare()
                twin.enqueue()
                other.prepare()
                if replay is None:
                    replay = captured(other, device)
                replay()
                compared += compare(twin.batch, other.batch)
        samples = client.server_info()["t"].rate_limiter_info.sample_stats.completed
        assert samples == 2 * 30 * 64, samples
        assert client.server_info()["t"].num_unused_samples == 0
    return {"seed": seed, "bytes": compared}


def captured(sampler: gear_reverb.FixedBatchSampler, device: str) -> Any:
    """What puts a batch on the current stream."""
    if device == "cpu":
        return sampler.enqueue
    torch = importlib.import_module("torch")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sampler.enqueue()
    return graph.replay


def rates(device: str, out: str, small: bool) -> Iterator[dict[str, Any]]:
    """Batches per second: drawn by the host and by the device, and the latter's graph."""
    finish = finish_of(device)

    def measured(batch: int, by: str, draw: Any) -> dict[str, Any]:
        rate = 1 / seconds_of_one(draw, finish, small)
        print(f"   B={batch} by the {by}: {rate:.0f} batches/s")
        return {"batch": batch, "by": by, "batches_per_second": rate}

    with a_client(500 if small else 20_000) as client:
        for batch in (4, 32) if small else (32, 256, 1024):
            for draw in ("host", "device"):
                with client.batch_sampler("t", batch, device=device, out=out, draw=draw) as sampler:
                    settle(sampler, draw)
                    yield measured(batch, draw, lambda s=sampler: next(s))
            with client.fixed_batch_sampler("t", batch, device=device, out=out) as sampler:
                sampler.prepare()
                replay = captured(sampler, device)

                def step(sampler: Any = sampler, replay: Any = replay) -> None:
                    sampler.prepare()
                    replay()

                yield measured(batch, "graph", step)
