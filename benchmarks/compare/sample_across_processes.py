"""How fast are batches drawn where the server is another process of the same host?

    python benchmarks/compare/sample_across_processes.py [--quick] [--only SIDE]

Uniform draws from a filled table; the bytes are those of the items' payload. Every side is a
process of its own, beside the process of its server. What each does:

- gear_reverb: `Client.batch_sampler` with its defaults over the data plane of its own choice, which
  on one host is shared memory, and once more over gRPC (`GEAR_REVERB_DATA_PLANE=grpc`).
- memcpy: one thread copies a batch as one block, see `_samplers.memcpy`: the limit.
- dm-reverb: `TrajectoryDataset(...).batch(n)`.
"""

import contextlib

import _compare
import _process
import _samplers
from _workloads import EVEN, KIB_64, SMALL, WORKLOADS

_OURS, _GRPC = _compare.OURS, f"{_compare.OURS}, gRPC"
_PLANES = {_OURS: "shared-memory", _GRPC: "grpc"}


def side(name: str, workload_name: str, port: str) -> None:
    workload, address = WORKLOADS[workload_name], f"localhost:{port}"
    if name == "memcpy":
        draw = _samplers.memcpy(workload)
    elif name == "dm-reverb":
        draw = _samplers.dm_reverb(workload, address)
    else:
        draw = _samplers.gear_reverb(workload, address, _PLANES[name])
    _process.answer(lambda seconds: _process.rate(draw, seconds))


def measure(workload, names: list[str], options: _compare.Options) -> _compare.Values:
    """Serves the workload's table once per implementation, and lets the sides take turns."""
    with contextlib.ExitStack() as stack:
        ports = _compare.serve(stack, workload, names, options, workload.items)
        return _compare.alternate(
            {
                name: _process.start_of(
                    __file__,
                    name,
                    workload.name,
                    ports.get(_compare.implementation_of(name), 0),
                    **(_compare.FORCE_GRPC if name == _GRPC else {}),
                )
                for name in _compare.served(names, ports)
            },
            options,
        )


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "sample_across_processes",
        "Batches drawn from another process's server",
        options,
        ("items", "side", "MB/s of payload", "/ memcpy", "/ dm-reverb"),
    )
    names = [_OURS, *options.pick([_GRPC], []), "memcpy", "dm-reverb"]
    for workload in options.pick(EVEN, (SMALL, KIB_64)):
        results = measure(workload, names, options)
        report.add(
            workload.title,
            results,
            unit="bytes/s",
            scale=1e-6,
            over=("memcpy", "dm-reverb"),
            workload=workload.name,
            batch=workload.batch,
            item_bytes=workload.item_bytes,
        )
        over_peer = _compare.ratio(results, _OURS, "dm-reverb")
        if workload is SMALL:
            report.bar(f"{workload.title}: over dm-reverb", over_peer, 12)
        else:
            over_copy = _compare.ratio(results, _OURS, "memcpy")
            report.bar(f"{workload.title}: over memcpy", over_copy, 0.6)
            report.bar(f"{workload.title}: over dm-reverb", over_peer, 6)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
