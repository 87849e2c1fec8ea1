"""Times whole batches, drawn and gathered, for gpu_check.py."""

import contextlib
import importlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from gpu_workloads import WORKLOADS

import gear_reverb
from gear_reverb import rate_limiters, selectors


def through_the_tier(device: str, out: str, copy_rate: float, draw: str) -> list[dict[str, Any]]:
    """Batches of a table whose columns the device keeps."""
    results = []
    # (workload, batch, items): each batch is large, and the table some times as large.
    for name, batch, items in (("W2", 256, 1024), ("W3", 32, 64), ("W5", 256, 512)):
        if device == "cpu":  # To prove the steps.
            batch, items = batch // 16, items // 4
        widths = WORKLOADS[name].widths
        with tier_sampler(device, out, draw, batch, items, widths) as (sampler, tier):
            for _ in range(3):
                next(sampler)
            before = sampler.device_stats()
            count = 20
            rate = count * batch * sum(widths) / seconds_of(sampler, count, out)
            after = sampler.device_stats()
        there, all_bytes = (after[k] - before[k] for k in ("device_bytes", "gathered_bytes"))
        # Of batches that the device draws the host does not know.
        if draw == "host":
            assert there >= 0.99 * all_bytes, f"{there} of {all_bytes} bytes were on the device"
        result = {"workload": name, "batch": batch, "bytes_per_second": rate, "tier": tier}
        if copy_rate:
            result["of_copy"] = rate / copy_rate
        results.append(result)
        of_copy = f", {rate / copy_rate:.2f} of the copy" if copy_rate else ""
        print(f"   {name} B={batch}: {rate / 1e9:.1f} GB/s{of_copy}")
    return results


@contextlib.contextmanager
def tier_sampler(
    device: str, out: str, draw: str, batch: int, items: int, widths: list[int]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A sampler of a table with `items` items of these columns' bytes, all on the device."""
    uniform, fifo = selectors.Uniform(), selectors.Fifo()
    limiter = rate_limiters.MinSize(1)
    table = gear_reverb.Table("tier", uniform, fifo, items, limiter, placement="device")
    server = gear_reverb.Server([table])
    try:
        client = server.localhost_client()
        rng = np.random.default_rng()
        for _ in range(8):
            rows = [rng.integers(0, 256, (items // 8, 4, w // 4), np.uint8) for w in widths]
            client.insert_batch("tier", rows, 1.0)
        with client.batch_sampler("tier", batch, device=device, out=out, draw=draw) as sampler:
            next(sampler)
            tier: dict[str, Any] = {}
            give_up = time.monotonic() + 60
            while tier.get("resident_bytes", 0) < items * sum(widths):
                tiers = sampler.device_stats()["tiers"]
                tier = next(t for t in reversed(tiers) if t["table"] == "tier")
                assert time.monotonic() < give_up and not tier["overflow_bytes"], tier
                time.sleep(0.01)
            yield sampler, tier
    finally:
        server.stop()


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


def end_to_end(device: str, out: str) -> dict[str, float]:
    """Batches of a table, drawn and gathered, in bytes per second: W1's columns, in process."""
    rng = np.random.default_rng()
    fifo = selectors.Fifo()
    limiter = rate_limiters.MinSize(1)
    table = gear_reverb.Table("t", selectors.Uniform(), fifo, 10_000, limiter)
    server = gear_reverb.Server([table])
    try:
        client = server.localhost_client()
        obs = rng.standard_normal((400, 1000, 11), np.float32)
        act = rng.standard_normal((400, 1000, 3), np.float32)
        client.insert_batch("t", [obs, act], 1.0)
        rates = {}
        for batch in (32, 256):
            with client.batch_sampler("t", batch, device=device, out=out) as sampler:
                for _ in range(5):
                    next(sampler)
                count = 40
                seconds = seconds_of(sampler, count, out)
                print(f"   W1 B={batch}: {sampler.device_stats()}")
            rates[f"W1 B={batch}"] = count * batch * 56_000 / seconds
        return rates
    finally:
        server.stop()
