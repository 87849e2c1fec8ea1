"""Times gathers by the kernels alone, for gpu_check.py."""

import importlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from gpu_workloads import WORKLOADS

from gear_reverb import _native

REPEATS = 7
BATCHES = (32, 256, 1024, 512, 128, 64)
MOST_BYTES = 13 << 30  # Of one batch: W3 of 1024.
ENGINE_FROM = 64 << 10  # Smaller pieces cost the copy engine more to start than to copy.


def measure(gpu: int, way: str, place: str, name: str, batch: int, repeats: int = REPEATS) -> float:
    """Bytes per second of one gather of all columns."""
    workload = WORKLOADS[name]
    columns = list(workload.columns)
    return _native.cuda_measure_gather(gpu, way, place, batch, columns, workload.least, repeats)


def ways_of(name: str) -> list[str]:
    """Those that are worth a measurement."""
    largest = max(piece_bytes for _, piece_bytes in WORKLOADS[name].columns)
    return ["lanes", "bulk"] + (["engine"] if largest >= ENGINE_FROM else [])


def rates(gpu: int, place: str, copy_rate: float, small: bool) -> Iterator[dict[str, Any]]:
    """Each workload by every way, against the copy's rate; batches of the bars first."""
    for batch in (1,) if small else BATCHES:
        for name, workload in WORKLOADS.items():
            if batch * workload.mean_bytes > MOST_BYTES:
                continue
            for way in ways_of(name):
                rate = measure(gpu, way, place, name, batch, 1 if small else REPEATS)
                result = {"workload": name, "batch": batch, "way": way}
                print(f"   {name} B={batch:<5} {way:7} {rate / copy_rate:5.2f} of the copy")
                yield result | {"bytes_per_second": rate, "of_copy": rate / copy_rate}


def against_index_select(gpu: int) -> Iterator[dict[str, Any]]:
    """What a PyTorch user does: index_select of rows into pinned memory and one copy; or in HBM."""
    for name, batch in (("W2", 256), ("W3", 256), ("W5", 256)):
        for place, theirs in index_select_rates(gpu, name, batch).items():
            ours = max(measure(gpu, way, place, name, batch) for way in ways_of(name))
            ratio = ours / theirs
            print(f"   {name} B={batch} from {place}: {ratio:.2f} of index_select")
            yield {"workload": name, "batch": batch, "place": place, "ratio": ratio}


def index_select_rates(gpu: int, name: str, batch: int) -> dict[str, float]:
    """Bytes per second by place, column after column: of a GPU's work alone by events, as ours."""
    torch = importlib.import_module("torch")
    device = torch.device("cuda", gpu)
    widths = WORKLOADS[name].widths
    count = max(2 * batch, (1 << 30) // sum(widths))

    def bytes_of(rows: int, width: int, **options: Any) -> Any:
        if width % 4 == 0:  # As floats are copied.
            return torch.empty((rows, width // 4), dtype=torch.float32, **options)
        return torch.empty((rows, width), dtype=torch.uint8, **options)

    pinned = [bytes_of(batch, width, pin_memory=True) for width in widths]
    targets = [bytes_of(batch, width, device=device) for width in widths]
    flushed = torch.empty(128 << 20, dtype=torch.uint8, device=device)
    on_gpu = [bytes_of(count, width, device=device).fill_(1) for width in widths]
    index_on_gpu = torch.randint(0, count, (batch,), device=device)
    rows, index = [column.cpu() for column in on_gpu], index_on_gpu.cpu()

    def from_host() -> None:
        for column, staging, target in zip(rows, pinned, targets):
            torch.index_select(column, 0, index, out=staging)
            target.copy_(staging, non_blocking=True)

    def in_hbm() -> None:
        for column, target in zip(on_gpu, targets):
            torch.index_select(column, 0, index_on_gpu, out=target)

    def seconds(work: Callable[[], None]) -> float:
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        work()
        torch.cuda.synchronize(device)
        return time.perf_counter() - start

    def seconds_of_gpu(work: Callable[[], None]) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(device):
            flushed.fill_(1)  # As ours: it begins on a busy GPU, with nothing cached.
            first.record()
            work()
            last.record()
        last.synchronize()
        return first.elapsed_time(last) / 1e3

    rates = {}
    # From the host, the host's own work is a part of it.
    for place, work, clock in (("host", from_host, seconds), ("device", in_hbm, seconds_of_gpu)):
        warm = time.monotonic() + 0.03
        while time.monotonic() < warm:
            clock(work)
        times = sorted(clock(work) for _ in range(REPEATS))
        rates[place] = batch * sum(widths) / times[REPEATS // 2]
    return rates


def bars(values: dict[str, Any]) -> list[dict[str, Any]]:
    """What a GPU must reach, and what it has reached in this run; None where that is not known."""

    def best(place: str, name: str, batch: int) -> float:
        return max(
            (
                result["of_copy"]
                for result in values.get(f"gather from {place}", [])
                if (result["workload"], result["batch"]) == (name, batch)
            ),
            default=math.nan,
        )

    def least(numbers: list[float]) -> float:
        return math.nan if any(map(math.isnan, numbers)) else min(numbers, default=math.nan)

    def whole(name: str, batch: int) -> float:
        return max(
            (
                result["bytes_per_second"]
                for result in values.get("whole batches", [])
                if (result["workload"], result["batch"]) == (name, batch)
            ),
            default=math.nan,
        )

    large, names = (256, 512, 1024), ("W2", "W3", "W5")
    selection = {result["items"]: result for result in values.get("selection", [])}
    fewest, most = (selection.get(items, {}) for items in (10**5, 10**8))
    compared = {(r["workload"], r["place"]): r["ratio"] for r in values.get("index_select", [])}
    found = [
        (
            "gather from host, of the copy",
            least([best("host", n, b) for n in names for b in large]),
            0.9,
        ),
        (
            "batch 32 against 1024, from host",
            least([best("host", n, 32) / best("host", n, 1024) for n in ("W1", "W2", "W3")]),
            0.8,
        ),
        (
            "whole batches of 32 against 1024 (of W3 against 256)",
            least(
                [whole(n, 32) / whole(n, b) for n, b in (("W1", 1024), ("W2", 1024), ("W3", 256))]
            ),
            0.8,
        ),
        (
            "gather from HBM, of the copy",
            least([best("device", n, b) for n in names for b in large]),
            0.8,
        ),
        (
            "index_select from host",
            least([compared.get((n, "host"), math.nan) for n in names]),
            2,
        ),
        (
            "index_select in HBM",
            least([compared.get((n, "device"), math.nan) for n in names]),
            1.2,
        ),
        (
            "draws of 2^20 per ms",
            1 / most.get(f"draw {1 << 20} ms", math.nan),
            1,
        ),
        (
            "update: 2 x the time at 10^5 items by that at 10^8",
            2 * fewest.get("update 4096 ms", math.nan) / most.get("update 4096 ms", math.nan),
            1,
        ),
    ]
    results = []
    for name, measured, required in found:
        met = measured >= required
        known = None if math.isnan(measured) else measured  # JSON has no NaN.
        verdict = "met" if met else "NOT MET" if known is not None else "unmeasured"
        print(f"   {verdict}: {name}: {measured:.2f} (>= {required})")
        results.append({"name": name, "measured": known, "required": required, "met": met})
    return results
