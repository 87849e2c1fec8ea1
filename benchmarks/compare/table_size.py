"""How does the time to draw a batch grow from 10^4 to 10^7 items?

    python benchmarks/compare/table_size.py [--quick]

Batches of 256 items of 4 floats, drawn when asked for (`prefetch=0`) in the process of the
server, from one table chosen uniformly and one by priority (exponent 0.6); each size is a process
of its own. A batch of the small table comes from the caches, one of the large table from memory:
that, and the depth of the tree of priorities, is what grows.
"""

import _compare
import _process
import numpy as np

_SIZES = (10**4, 10**5, 10**6, 10**7)
_BATCH, _WIDTH, _BLOCK = 256, 4, 10_000
_SELECTORS = ("uniform", "prioritized")


def side(selector: str, size: str) -> None:
    import gear_reverb as reverb

    table = reverb.Table(
        "table",
        reverb.selectors.Uniform() if selector == "uniform" else reverb.selectors.Prioritized(0.6),
        reverb.selectors.Fifo(),
        int(size),
        reverb.rate_limiters.MinSize(1),
        max_times_sampled=0,
    )
    server = reverb.Server([table])
    client = server.localhost_client()
    rng = np.random.default_rng(0)
    items = rng.standard_normal((_BLOCK, 1, _WIDTH), np.float32)
    for _ in range(int(size) // _BLOCK):
        client.insert_batch("table", [items], rng.exponential(size=_BLOCK) + 1e-3)
    assert table.info.current_size == int(size)
    batches = client.batch_sampler("table", _BATCH, prefetch=0)

    def call() -> float:
        next(batches)
        return 1

    _process.answer(lambda seconds: 1e6 / _process.rate(call, seconds))


def _name(size: int) -> str:
    return f"{size:.0e} items".replace("e+0", "e")


def main() -> int:
    options = _compare.parse(__doc__)
    sizes = options.pick(_SIZES, (_SIZES[0], _SIZES[2]))
    report = _compare.Report(
        "table_size",
        f"A batch of {_BATCH} from tables of several sizes",
        options,
        ("chosen", "table", "microseconds", f"/ {_name(sizes[0])}"),
    )
    for selector in _SELECTORS:
        sides = {_name(size): _process.start_of(__file__, selector, size) for size in sizes}
        results = _compare.alternate(sides, options)
        report.add(
            selector,
            results,
            unit="microseconds",
            form=",.1f",
            over=(_name(sizes[0]),),
            sizes=list(sizes),
        )
        growth = _compare.ratio(results, _name(sizes[-1]), _name(sizes[0]))
        report.bar(
            f"{selector}: growth from {_name(sizes[0])} to {_name(sizes[-1])}",
            growth,
            3,
            at_most=True,
        )
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
