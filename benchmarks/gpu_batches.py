"""Times whole batches, drawn and gathered, for gpu_check.py."""

import contextlib
import importlib
import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gpu_workloads import WORKLOADS

import gear_reverb
from gear_reverb import rate_limiters, selectors

TABLE = "timed"
BATCHES = (32, 256, 1024)
MOST_BYTES = 4 << 30  # Of one batch: W3 of 256.


def through_the_tier(
    device: str, out: str, copy_rate: float, draw: str, small: bool
) -> Iterator[dict[str, Any]]:
    """Batches of a table whose columns the device keeps."""
    # (workload, batch, items): each batch is large, and the table some times as large.
    for name, batch, items in (("W2", 256, 1024), ("W3", 32, 64), ("W5", 256, 512)):
        if small:
            batch, items = 1, 4
        widths = WORKLOADS[name].widths
        with tier_sampler(device, out, draw, batch, items, widths) as (sampler, tier):
            settle(sampler, draw)
            before = sampler.device_stats()
            count = 2 if small else 20
            rate = count * batch * sum(widths) / seconds_of(sampler, count, out)
            after = sampler.device_stats()
        there, all_bytes = (after[k] - before[k] for k in ("device_bytes", "gathered_bytes"))
        # Of batches that the device draws the host does not know.
        if draw == "host":
            assert there >= 0.99 * all_bytes, f"{there} of {all_bytes} bytes were on the device"
        result = {"workload": name, "batch": batch, "bytes_per_second": rate, "tier": tier}
        if copy_rate:
            result["of_copy"] = rate / copy_rate
        of_copy = f", {rate / copy_rate:.2f} of the copy" if copy_rate else ""
        print(f"   {name} B={batch}: {rate / 1e9:.1f} GB/s{of_copy}")
        yield result


@contextlib.contextmanager
def client_of(
    items: int, widths: list[int], placement: Literal["host", "device"]
) -> Iterator[gear_reverb.Client]:
    """Of a server with a table of `items` items of columns of so many bytes, in a piece each."""
    uniform, fifo = selectors.Uniform(), selectors.Fifo()
    limiter = rate_limiters.MinSize(1)
    table = gear_reverb.Table(TABLE, uniform, fifo, items, limiter, placement=placement)
    server = gear_reverb.Server([table])
    try:
        client = server.localhost_client()
        rng = np.random.default_rng()
        for _ in range(4):
            rows = [rng.integers(0, 256, (items // 4, 4, w // 4), np.uint8) for w in widths]
            client.insert_batch(TABLE, rows, 1.0)
        yield client
    finally:
        server.stop()


@contextlib.contextmanager
def tier_sampler(
    device: str, out: str, draw: str, batch: int, items: int, widths: list[int]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A sampler of a table with `items` items of these columns' bytes, all on the device."""
    with (
        client_of(items, widths, "device") as client,
        client.batch_sampler(TABLE, batch, device=device, out=out, draw=draw) as sampler,
    ):
        next(sampler)
        tier: dict[str, Any] = {}
        give_up = time.monotonic() + 60
        while tier.get("resident_bytes", 0) < items * sum(widths):
            tiers = sampler.device_stats()["tiers"]
            tier = next(t for t in reversed(tiers) if t["table"] == TABLE)
            assert time.monotonic() < give_up and not tier["overflow_bytes"], tier
            time.sleep(0.01)
        yield sampler, tier


def wait_for_device(out: str) -> None:
    if out == "torch":
        importlib.import_module("torch").cuda.synchronize()


def seconds_of(sampler, count: int, out: str) -> float:
    """How long `count` batches take, until the device is done with them."""
    wait_for_device(out)
    start = time.perf_counter()
    for _ in range(count):
        next(sampler)
    wait_for_device(out)
    return time.perf_counter() - start


def whole(device: str, out: str, copy_rate: float, small: bool) -> Iterator[dict[str, Any]]:
    """Batches of tables in the host's memory, small and large, drawn by the host and the device."""
    for name, items in (("W1", 4096), ("W2", 2048), ("W3", 128)):
        widths = WORKLOADS[name].widths
        with client_of(items // 32 if small else items, widths, "host") as client:
            for batch in (2,) if small else BATCHES:
                batch_bytes = batch * sum(widths)
                if batch_bytes > MOST_BYTES:
                    continue
                for draw in ("host", "device"):
                    options = {"device": device, "out": out, "draw": draw}
                    with client.batch_sampler(TABLE, batch, **options) as sampler:
                        staged = settle(sampler, draw)
                        count = 2 if small else max(16, min(100, 4 * MOST_BYTES // batch_bytes))
                        rate = count * batch_bytes / seconds_of(sampler, count, out)
                    of_copy = f", {rate / copy_rate:.2f} of the copy" if copy_rate else ""
                    print(f"   {name} B={batch}, the {draw} draws: {rate / 1e9:.1f} GB/s{of_copy}")
                    result = {"workload": name, "batch": batch, "draw": draw, "staged": staged}
                    yield result | {"bytes_per_second": rate}


def settle(sampler: Any, draw: str) -> int:
    """Draws until all memory is registered that is to be, which is so in the background.

    Returns bytes of the last four batches that had to be copied to registered memory all the same.
    """
    give_up = time.monotonic() + 5
    while True:
        before = sampler.device_stats()["staged_bytes"]
        for _ in range(4):  # More than are drawn ahead.
            next(sampler)
        stats = sampler.device_stats()
        assert draw == "host" or not stats["why_host_draws"], stats["why_host_draws"]
        staged = stats["staged_bytes"] - before
        if staged == 0 or time.monotonic() > give_up:
            return staged
        time.sleep(0.05)
