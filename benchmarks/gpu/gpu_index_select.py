"""Times what a PyTorch user does instead of sampling batches, for gpu_check.py.

That is index_select of random rows into pinned memory and one copy, or within the GPU's memory.
Rows are as many as the tables have that whole batches are timed with.
"""

import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from gpu_gathers import REPEATS, measure, ways_of
from gpu_timing import seconds_of_one
from gpu_workloads import ITEMS, WORKLOADS

FLUSHED_BYTES = 1 << 30
# What is compared with what, for who reads the result.
NOTE = {
    "host": "theirs and whole_step_of_theirs: whole steps by the host's clock; ours: the kernel "
    "alone by the GPU's",
    "device": "theirs and ours: the GPU's work alone by its clock; whole_step_of_theirs: by the "
    "host's clock, with the indices' draw",
}


def compared(gpu: int) -> Iterator[dict[str, Any]]:
    for name, batch in (("W2", 256), ("W3", 256), ("W5", 256)):
        for place, theirs in theirs_by_place(gpu, name, batch).items():
            ours = {way: measure(gpu, way, place, name, batch) for way in ways_of(name)}
            ratio = max(ours.values()) / theirs["theirs"]
            print(f"   {name} B={batch} from {place}: {ratio:.2f} of index_select")
            result = {"workload": name, "batch": batch, "place": place, "rows": ITEMS[name]}
            yield result | {"ours": ours, "ratio": ratio, "note": NOTE[place], **theirs}


def theirs_by_place(gpu: int, name: str, batch: int) -> dict[str, dict[str, float]]:
    """Bytes per second, column after column."""
    torch = importlib.import_module("torch")
    device = torch.device("cuda", gpu)
    widths, count = WORKLOADS[name].widths, ITEMS[name]

    def bytes_of(rows: int, width: int, **options: Any) -> Any:
        if width % 4 == 0:  # As floats are copied.
            return torch.empty((rows, width // 4), dtype=torch.float32, **options)
        return torch.empty((rows, width), dtype=torch.uint8, **options)

    pinned = [bytes_of(batch, width, pin_memory=True) for width in widths]
    targets = [bytes_of(batch, width, device=device) for width in widths]
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device=device)
    on_gpu = [bytes_of(count, width, device=device).fill_(1) for width in widths]
    rows = [column.cpu() for column in on_gpu]
    index_on_gpu = torch.randint(0, count, (batch,), device=device)

    def finish() -> None:
        torch.cuda.synchronize(device)

    def from_host() -> None:
        index = torch.randint(0, count, (batch,))
        for column, staging, target in zip(rows, pinned, targets):
            torch.index_select(column, 0, index, out=staging)
            target.copy_(staging, non_blocking=True)
        finish()  # The pinned memory is needed again.

    def in_hbm(index: Any) -> None:
        for column, target in zip(on_gpu, targets):
            torch.index_select(column, 0, index, out=target)

    def seconds_of_gpu(work: Callable[[], None]) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(device):
            flushed.fill_(1)  # As ours: it begins on a busy GPU, with nothing cached.
            first.record()
            work()
            last.record()
        last.synchronize()
        return first.elapsed_time(last) / 1e3

    def alone() -> float:
        warm = time.monotonic() + 0.2
        while time.monotonic() < warm:
            seconds_of_gpu(lambda: in_hbm(index_on_gpu))
        times = (seconds_of_gpu(lambda: in_hbm(index_on_gpu)) for _ in range(REPEATS))
        return statistics.median(times)

    def whole() -> None:
        in_hbm(torch.randint(0, count, (batch,), device=device))

    batch_bytes = batch * sum(widths)
    host = batch_bytes / seconds_of_one(from_host, finish, small=False)
    return {
        "host": {"theirs": host, "whole_step_of_theirs": host},
        "device": {
            "theirs": batch_bytes / alone(),
            "whole_step_of_theirs": batch_bytes / seconds_of_one(whole, finish, small=False),
        },
    }
