"""How long does a table take to draw a batch by priority, and how does that grow with its size?

    python benchmarks/core_draw.py [--repetitions 300] [--only cpprb]

Draws 256 keys with their probabilities from tables of 10^4 to 10^7 items in the core, no data
moved, beside cpprb's `PrioritizedReplayBuffer.sample(256)` of 10^6 items of one float. cpprb's call
gathers those 256 floats and computes importance weights too; ours looks keys up and takes the
table's lock. All tables live in one process and take turns.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable

import _harness
import numpy as np

_BATCH = 256
_SIZES = (10**4, 10**5, 10**6, 10**7)
_PEER_SIZE = 10**6
_CALLS = 10  # A measurement: the mean of so many calls in a row.
_EXPONENT = 0.6
_TIME_BAR, _GROWTH_BAR = 0.5, 3.0
_PEER = f"cpprb, {_PEER_SIZE:.0e} items"


def _priorities(size: int) -> np.ndarray:
    """As temporal-difference errors spread: many small, few large."""
    return np.random.default_rng(0).exponential(size=size) + 1e-3


def _ours(size: int) -> Callable[[], object]:
    from gear_reverb import _native

    unlimited = sys.float_info.max
    table = _native.Table(
        "table",
        _native.PrioritizedSelector(_EXPONENT),
        _native.FifoSelector(),
        size,
        0,
        _native.RateLimiter(1.0, 1, -unlimited, unlimited),
        seed=0,
    )
    # Keys without order, as clients draw them.
    keys = np.random.default_rng(1).integers(2**64, size=size, dtype=np.uint64)
    table.insert_keys(keys, _priorities(size))
    drawn, probabilities = table.sample_keys(_BATCH)
    assert drawn.shape == probabilities.shape == (_BATCH,) and np.isin(drawn, keys).all()
    return lambda: table.sample_keys(_BATCH)


def _theirs(size: int) -> Callable[[], object]:
    import cpprb

    fields = {"x": {"shape": 1, "dtype": np.float32}}
    buffer = cpprb.PrioritizedReplayBuffer(size, fields, alpha=_EXPONENT)
    buffer.add(x=np.zeros((size, 1), np.float32), priorities=_priorities(size))
    return lambda: buffer.sample(_BATCH, beta=0.4)


def _microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(_CALLS):
        call()
    return (time.perf_counter() - start) / _CALLS * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument(
        "--only", choices=("gear_reverb", "cpprb"), help="measure one; writes no results"
    )
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is not met")
    arguments = parser.parse_args()

    cases: dict[str, Callable[[], object]] = {}
    if arguments.only != "cpprb":
        cases |= {f"gear_reverb, {size:.0e} items": _ours(size) for size in _SIZES}
    if arguments.only != "gear_reverb":
        cases[_PEER] = _theirs(_PEER_SIZE)
    timers = {name: lambda call=call: _microseconds(call) for name, call in cases.items()}
    _harness.alternate(timers, 10)
    results = _harness.alternate(timers, arguments.repetitions)
    summaries = {name: _harness.Summary.of(values) for name, values in results.items()}

    rows = []
    for name, summary in summaries.items():
        peer = summaries[_PEER].median if _PEER in summaries else math.nan
        rows.append((name, summary.show(",.1f"), f"{summary.median / peer:.2f}"))
    console = _harness.print_table(
        f"A batch of {_BATCH} by priority, medians and quartiles of {arguments.repetitions}",
        ("table", "microseconds", "over cpprb"),
        rows,
    )
    if arguments.only:
        return 0
    medians = {size: summaries[f"gear_reverb, {size:.0e} items"].median for size in _SIZES}
    bars = [
        _harness.Bar(
            "time over cpprb's at 10^6 items",
            medians[_PEER_SIZE] / summaries[_PEER].median,
            _TIME_BAR,
            at_most=True,
        ),
        _harness.Bar(
            "growth from 10^4 to 10^7 items",
            medians[_SIZES[-1]] / medians[_SIZES[0]],
            _GROWTH_BAR,
            at_most=True,
        ),
    ]
    _harness.print_bars(bars, console)
    recorded = {name: {"microseconds": values} for name, values in results.items()}
    console.print(_harness.write_results("core_draw", recorded, bars))
    return 1 if arguments.check and not all(bar.met for bar in bars) else 0


if __name__ == "__main__":
    sys.exit(main())
