"""How fast does a TrajectoryWriter get items into a server of another process?

    python benchmarks/compare/write.py [--quick] [--only gear_reverb]

One writer, one server, each a process of its own, per side. The clock runs until the server has
confirmed the last item of a round. Both sides get the same steps, chunks as long as the items, and
the same flushes (after 16 MiB or 200 items). Every item has steps of its own. Two tables:

- growing: never full; what comes needs memory that the server has not used before.
- full: every item evicts the oldest one; its memory comes free.

dm-reverb's chunks are compressed as its writer does by itself; the payload is noise. gear_reverb
takes the data plane of its own choice, which on one host is shared memory.
"""

import contextlib
import time

import _compare
import _process
import _tables
from _workloads import EVEN, KIB_64, SMALL, WORKLOADS

_PEER = "dm-reverb"
_SIDES = (_compare.OURS, _PEER)
_TABLES = {"growing": "growing", "full": _tables.TABLE}
_ROUND_BYTES = 128 << 20  # A round, at most: the growing table keeps all of it.


def side(name: str, workload_name: str, port: str) -> None:
    """Answers items per second, by table; the tables take turns."""
    workload = WORKLOADS[workload_name]
    client = _tables.load(name).Client(f"localhost:{port}")
    if name == _compare.OURS:
        _tables.require_plane(client, "shared-memory")
    filler = _tables.Filler(client, workload)
    most = max(16, _ROUND_BYTES // workload.item_bytes)
    counts = dict.fromkeys(_TABLES, min(most, 2000))
    for title, table in _TABLES.items():
        filler.write(counts[title] // 4, table)

    def measure(title: str, seconds: float) -> float:
        count = counts[title]
        start = time.perf_counter()
        filler.write(count, _TABLES[title])
        rate = count / (time.perf_counter() - start)
        counts[title] = max(16, min(most, int(rate * seconds)))  # For the next round.
        return rate

    _process.answer(lambda seconds: {title: measure(title, seconds) for title in _TABLES})


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "write",
        "TrajectoryWriter to another process's server",
        options,
        ("items, table", "side", "items/s", "/ dm-reverb"),
    )
    for workload in options.pick(EVEN, (SMALL, KIB_64)):
        # As many as fit a round, so that the full table has been through its memory.
        held = min(workload.items, max(16, _ROUND_BYTES // workload.item_bytes))
        with contextlib.ExitStack() as stack:
            ports = _compare.serve(stack, workload, _SIDES, options, held)
            measured = _compare.alternate(
                {
                    name: _process.start_of(__file__, name, workload.name, port)
                    for name, port in ports.items()
                },
                options,
            )
        for title in _TABLES:
            results = {name: [each[title] for each in rounds] for name, rounds in measured.items()}
            case = f"{workload.title}; {title}"
            report.add(
                case,
                results,
                unit="items/s",
                over=(_PEER,),
                workload=workload.name,
                table=title,
                item_bytes=workload.item_bytes,
            )
            over_peer = _compare.ratio(results, _compare.OURS, _PEER)
            report.bar(f"{case}: items/s and bytes/s over dm-reverb", over_peer, 3)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
