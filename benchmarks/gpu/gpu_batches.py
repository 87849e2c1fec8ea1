"""Times whole batches, drawn and gathered, for gpu_check.py."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gpu_tables import TABLE, client_of_none
from gpu_timing import finish_of, seconds_of_one
from gpu_workloads import ITEMS, WORKLOADS

import gear_reverb

BATCHES = (32, 256, 1024)
MOST_BYTES = 4 << 30  # Of one batch: W3 of 256.


def through_the_tier(
    device: str, out: str, copy_rate: float, draw: str, small: bool
) -> Iterator[dict[str, Any]]:
    """Batches of a table whose columns the device keeps."""
    finish = finish_of(device)
    for name in ("W2", "W3", "W5"):
        batch, items = (1, 4) if small else (256, ITEMS[name])
        widths = WORKLOADS[name].widths
        with tier_sampler(device, out, draw, batch, items, widths) as (sampler, tier):
            settle(sampler, draw)
            before = sampler.device_stats()
            seconds = seconds_of_one(lambda s=sampler: next(s), finish, small)
            rate = batch * sum(widths) / seconds
            after = sampler.device_stats()
        there, all_bytes = (after[k] - before[k] for k in ("device_bytes", "gathered_bytes"))
        # Of batches that the device draws the host does not know.
        if draw == "host":
            assert there >= 0.99 * all_bytes, f"{there} of {all_bytes} bytes were on the device"
        result = {"workload": name, "batch": batch, "bytes_per_second": rate, "tier": tier}
        if copy_rate:
            result["of_copy"] = rate / copy_rate
        print(f"   {name} B={batch}: {shown(rate, copy_rate)}")
        yield result


def shown(rate: float, copy_rate: float) -> str:
    of_copy = f", {rate / copy_rate:.2f} of the copy" if copy_rate else ""
    return f"{rate / 1e9:.1f} GB/s{of_copy}"


@contextlib.contextmanager
def client_of(
    items: int, widths: list[int], placement: Literal["host", "device"]
) -> Iterator[gear_reverb.Client]:
    """Of a server with a table of `items` items of columns of so many bytes, in a piece each."""
    with client_of_none(items, placement) as client:
        rng = np.random.default_rng()
        for _ in range(4):
            rows = [rng.integers(0, 256, (items // 4, 4, w // 4), np.uint8) for w in widths]
            client.insert_batch(TABLE, rows, 1.0)
        yield client


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


def whole(device: str, out: str, copy_rate: float, small: bool) -> Iterator[dict[str, Any]]:
    """Batches of tables in the host's memory, small and large, drawn by the host and the device."""
    for name, batches in (("W1", BATCHES), ("W2", BATCHES), ("W3", BATCHES[:2]), ("W5", (256,))):
        widths = WORKLOADS[name].widths
        items = max(4, ITEMS[name] // 32) if small else ITEMS[name]
        with client_of(items, widths, "host") as client:
            for batch in (2,) if small else batches:
                for draw in ("host", "device"):
                    options = {"device": device, "out": out, "draw": draw}
                    timed = of_sampler(client, batch, batch * sum(widths), small, options)
                    rate = timed["bytes_per_second"]
                    print(f"   {name} B={batch}, the {draw} draws: {shown(rate, copy_rate)}")
                    yield {"workload": name, "batch": batch, "draw": draw} | timed


def of_sampler(
    client: gear_reverb.Client, batch: int, batch_bytes: float, small: bool, options: dict[str, Any]
) -> dict[str, Any]:
    """The rate of a sampler's batches, which have so many bytes, and what is to be known of it."""
    with client.batch_sampler(TABLE, batch, **options) as sampler:
        staged = settle(sampler, options["draw"])
        finish = finish_of(options["device"])
        seconds = seconds_of_one(lambda: next(sampler), finish, small)
        error = sampler.device_stats()["registration_error"]
    rate = batch_bytes / seconds
    return {"bytes_per_second": rate, "staged": staged, "registration_error": error}


def settle(sampler: Any, draw: str) -> int:
    """Draws until all memory is registered that is to be, which is so in the background.

    Returns bytes of the last four batches that had to be copied to registered memory all the same;
    lengths, which lie beside the items, always are.
    """
    give_up = time.monotonic() + 5
    while True:
        before = sampler.device_stats()
        for _ in range(4):  # More than are drawn ahead.
            next(sampler)
        stats = sampler.device_stats()
        assert draw == "host" or not stats["why_host_draws"], stats["why_host_draws"]
        staged, gathered = (stats[k] - before[k] for k in ("staged_bytes", "gathered_bytes"))
        if staged <= 0.01 * gathered or time.monotonic() > give_up:
            return staged
        time.sleep(0.05)
