"""How fast are the TensorFlow datasets, for one and the same program?

    python benchmarks/compare/datasets.py [--quick] [--only SIDE]

Both sides run the same lines, with dm-reverb and with gear_reverb in its place, on a server of the
same process and on one of another: `from_table_signature` with the options that are the fastest for
dm-reverb (see `_samplers.dm_reverb`), then

- batch: `TrajectoryDataset.batch(n)`; of items that differ in length, `padded_batch(n)`.
- map, batch: the same after a `map` that takes the data alone, where single items cross.

Counted are items per second. Every side is a process of its own.
"""

import contextlib
import functools

import _compare
import _process
import _samplers
import _tables
from _workloads import EVEN, KIB_64, RAGGED, SMALL, WORKLOADS

_SIDES = (_compare.OURS, "dm-reverb")
_BARS = {"same process": 1.0, "another process": 2.5}
_FULL = [
    *((workload, "batch") for workload in (*EVEN, RAGGED)),
    (SMALL, "map, batch"),
    (RAGGED, "map, batch"),
]
_QUICK = [(KIB_64, "batch")]


def batches(reverb, workload, address: str, kind: str):
    """An iterator of a dataset's batches."""
    small = workload.item_bytes < 16384
    dataset = reverb.TrajectoryDataset.from_table_signature(
        server_address=address,
        table=_tables.TABLE,
        max_in_flight_samples_per_worker=(4 if small else 2) * workload.batch,
        num_workers_per_iterator=4 if small else -1,
    )
    if kind == "map, batch":
        dataset = dataset.map(lambda sample: sample.data)
    batch = dataset.padded_batch if workload.ragged else dataset.batch
    return iter(batch(workload.batch, drop_remainder=True))


def side(name: str, workload_name: str, kind: str, port: str = "") -> None:
    workload, server, address = WORKLOADS[workload_name], None, f"localhost:{port}"
    if not port:
        server, address = _samplers.server_in_process(name, workload)
    iterator = batches(_tables.load(name), workload, address, kind)
    draw = functools.partial(_next, iterator, workload.batch)
    _process.answer(lambda seconds: _process.rate(draw, seconds))
    del server


def _next(iterator, size: int) -> float:
    next(iterator)
    return size


def measure(workload, kind: str, where: str, options: _compare.Options) -> _compare.Values:
    """Rates by side."""
    with contextlib.ExitStack() as stack:
        ports, names = {}, _SIDES
        if where == "another process":
            ports = _compare.serve(stack, workload, _SIDES, options, workload.items)
            names = _compare.served(_SIDES, ports)
        sides = {}
        for name in names:
            port = [ports[name]] if name in ports else []
            sides[name] = _process.start_of(
                __file__, name, workload.name, kind, *port, GEAR_REVERB_TENSORFLOW="1"
            )
        return _compare.alternate(sides, options)


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "datasets",
        "TensorFlow datasets",
        options,
        ("items", "side", "1000 items / s", "/ dm-reverb"),
    )
    for where, required in _BARS.items():
        for workload, kind in options.pick(_FULL, _QUICK):
            results = measure(workload, kind, where, options)
            case = f"{workload.title}: {kind}, {where}"
            report.add(
                case,
                results,
                unit="items/s",
                scale=1e-3,
                form=",.1f",
                over=("dm-reverb",),
                workload=workload.name,
                batch=workload.batch,
            )
            if kind == "batch":
                over = _compare.ratio(results, _compare.OURS, "dm-reverb")
                report.bar(f"{case}: over dm-reverb", over, required)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
