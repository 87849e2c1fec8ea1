"""How do 1, 2 and 4 writers, and 1, 2 and 4 samplers, share one table?

    python benchmarks/compare/scaling.py [--quick]

Every writer and sampler is a process of its own, beside the process of the server; the numbers are
the sums over those that work at once, in items per second. Writers write into one full table with a
TrajectoryWriter, samplers draw from it with a batch sampler; both as in `write.py` and
`sample_across_processes.py`. The server works too: where there are fewer cores than processes, the
sum cannot grow with their number. dm-reverb does the same work beside us.
"""

import concurrent.futures
import contextlib

import _compare
import _process
import _samplers
import _tables
from _workloads import KIB_64, SMALL, WORKLOADS

_COUNTS = (1, 2, 4)
_IMPLEMENTATIONS = (_compare.OURS, "dm-reverb")
_WRITE_ITEMS = {SMALL.name: 400, KIB_64.name: 100}  # Between two looks at the clock.


def side(implementation: str, role: str, workload_name: str, port: str) -> None:
    """Answers items per second."""
    workload, address = WORKLOADS[workload_name], f"localhost:{port}"
    if role == "writers":
        count = _WRITE_ITEMS[workload_name]
        filler = _tables.Filler(_tables.load(implementation).Client(address), workload)

        def call() -> float:
            filler.write(count)
            return count

    else:
        if implementation == _compare.OURS:
            draw = _samplers.gear_reverb(workload, address, "shared-memory")
        else:
            draw = _samplers.dm_reverb(workload, address)

        def call() -> float:
            return draw() / workload.item_bytes

    call()
    _process.answer(lambda seconds: _process.rate(call, seconds))


class Team:
    """Sides that measure at once; looks like one side, whose measure is their sum."""

    def __init__(self, count: int, start: _compare.StartSide):
        self._sides = [start() for _ in range(count)]
        self._pool = concurrent.futures.ThreadPoolExecutor(count)

    def wait_ready(self) -> "Team":
        for each in self._sides:
            each.wait_ready()
        return self

    def ask(self, seconds: float) -> float:
        return sum(self._pool.map(lambda each: each.ask(seconds), self._sides))

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_) -> None:
        self._pool.shutdown()
        for each in self._sides:
            each.close()


def main() -> int:
    options = _compare.parse(__doc__, rounds=5)
    report = _compare.Report(
        "scaling",
        "Several writers or samplers of one table",
        options,
        ("work", "side", "items/s", f"/ {_side_name(_compare.OURS, 1)}"),
    )
    roles = options.pick(("writers", "samplers"), ("samplers",))
    for role in roles:
        for workload in options.pick((SMALL, KIB_64), (KIB_64,)):
            with contextlib.ExitStack() as stack:
                implementations = options.pick(_IMPLEMENTATIONS, _IMPLEMENTATIONS[:1])
                items = min(workload.items, 50_000)
                ports = _compare.serve(stack, workload, implementations, options, items)
                results = {}
                for name, port in ports.items():
                    start = _process.start_of(__file__, name, role, workload.name, port)
                    results |= _compare.alternate(
                        {
                            _side_name(name, count): lambda count=count, start=start: Team(
                                count, start
                            )
                            for count in _COUNTS
                        },
                        options,
                    )
            report.add(
                f"{role}, {workload.title}",
                results,
                unit="items/s",
                over=(_side_name(_compare.OURS, 1),),
                role=role,
                workload=workload.name,
                counts=list(_COUNTS),
            )
    return report.finish()


def _side_name(implementation: str, count: int) -> str:
    return f"{implementation}, {count}"


if __name__ == "__main__":
    _process.run(main, side)
