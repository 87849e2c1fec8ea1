"""Times gathers by the kernels alone, for gpu_check.py."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpu_workloads import WORKLOADS

from gear_reverb import _native

REPEATS = 7
BATCHES = (32, 256, 1024, 512)
MORE_BATCHES = (128, 64)
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


def rates(
    gpu: int, place: str, copy_rate: float, batches: Sequence[int], small: bool
) -> Iterator[dict[str, Any]]:
    """Each workload by every way, against the copy's rate."""
    for batch in (1,) if small else batches:
        for name, workload in WORKLOADS.items():
            if batch * workload.mean_bytes > MOST_BYTES:
                continue
            for way in ways_of(name):
                rate = measure(gpu, way, place, name, batch, 1 if small else REPEATS)
                result = {"workload": name, "batch": batch, "way": way}
                print(f"   {name} B={batch:<5} {way:7} {rate / copy_rate:5.2f} of the copy")
                yield result | {"bytes_per_second": rate, "of_copy": rate / copy_rate}
