"""Times what a host starts and a device ends, for gpu_check.py."""

import importlib
import statistics
import time
from collections.abc import Callable

WINDOW_SECONDS = 0.2
WINDOWS = 5


def finish_of(device: str) -> Callable[[], None]:
    """What waits until the device has done everything."""
    if device == "cpu":
        return lambda: None
    return importlib.import_module("torch").cuda.synchronize


def seconds_of_one(work: Callable[[], object], finish: Callable[[], None], small: bool) -> float:
    """How long one call takes of many: the median of windows, after a warm-up of one or two."""

    def window(count: int) -> float:
        finish()
        start = time.perf_counter()
        for _ in range(count):
            work()
        finish()
        return time.perf_counter() - start

    if small:
        return window(2) / 2
    count = 1
    while window(count) < WINDOW_SECONDS:
        count *= 2
    return statistics.median(window(count) for _ in range(WINDOWS)) / count
