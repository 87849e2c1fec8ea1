"""How long does a batch of 256 small transitions take on an idle server of another process?

    python benchmarks/compare/latency.py [--quick] [--only gear_reverb]

The batch is drawn when it is asked for, one after another by one consumer; p50 and p99 of the
calls of a round. Every side is a process of its own, beside its server's. What each does:

- gear_reverb: `next` of a `batch_sampler(..., prefetch=0)` over shared memory, `sample_batch` over
  shared memory, and the first once more over gRPC.
- unary call, C++: `reset` of an empty table of the same server over gRPC, with the core's client:
  the call that does the least in server and client.
- unary call, grpcio: an empty method of a server written with grpcio, called by its stub.
- dm-reverb: 256 items from `Client.sample`. It has no call that draws a batch when asked.

The bar compares with the faster one of the two unary calls.
"""

import contextlib
import statistics

import _compare
import _process
import _tables
from _workloads import SMALL, WORKLOADS

_SAMPLER = f"{_compare.OURS}, sampler"
_CALL = f"{_compare.OURS}, sample_batch"
_GRPC = f"{_compare.OURS}, sampler over gRPC"
_UNARY = f"{_compare.OURS}, unary call in C++"
_UNARY_PYTHON = "grpcio, unary call"
_PEER = "dm-reverb, Client.sample"
_OVER_GRPC = (_GRPC, _UNARY)


def side(name: str, workload_name: str, port: str) -> None:
    call = _call(name, WORKLOADS[workload_name], f"localhost:{port}")
    _process.latencies(call, 0.3)

    def measure(seconds: float) -> dict[str, float]:
        values = _process.latencies(call, seconds)
        if len(values) < 100:
            values *= 100 // len(values) + 1  # Slow calls: the largest stands for p99.
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        return {"p50": cuts[49], "p99": cuts[98]}

    _process.answer(measure)


def _call(name: str, workload, address: str):
    if name == _UNARY_PYTHON:
        import _unary_server
        import grpc

        stub = grpc.insecure_channel(address).unary_unary(_unary_server.METHOD)
        return lambda: stub(b"")
    client = _tables.load(_compare.implementation_of(name)).Client(address)
    if name == _PEER:
        return lambda: list(
            client.sample(_tables.TABLE, num_samples=workload.batch, emit_timesteps=False)
        )
    _tables.require_plane(client, "grpc" if name in _OVER_GRPC else "shared-memory")
    if name == _UNARY:
        return lambda: client.reset("empty")
    if name == _CALL:
        return lambda: client.sample_batch(_tables.TABLE, workload.batch)
    batches = client.batch_sampler(_tables.TABLE, workload.batch, prefetch=0)
    return lambda: next(batches)


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "latency",
        "A batch of 256 small transitions, idle server in another process",
        options,
        ("quantile", "side", "microseconds"),
    )
    names = [_SAMPLER, _CALL, _GRPC, _UNARY, _UNARY_PYTHON, *options.pick([_PEER], [])]
    with contextlib.ExitStack() as stack:
        ports = _compare.serve(stack, SMALL, names, options, SMALL.items)
        unary = stack.enter_context(_process.Side("_unary_server.py")).wait_ready()
        ports["grpcio"] = unary.ready
        results = _compare.alternate(
            {
                name: _process.start_of(
                    __file__,
                    name,
                    SMALL.name,
                    ports[_compare.implementation_of(name)],
                    **(_compare.FORCE_GRPC if name in _OVER_GRPC else {}),
                )
                for name in _compare.served(names, ports)
                if options.wants(name)
            },
            options,
        )
    for quantile in ("p50", "p99"):
        values = {name: [each[quantile] for each in measured] for name, measured in results.items()}
        report.add(quantile, values, unit="microseconds", form=",.1f")
        if quantile == "p50":
            fastest = min((_UNARY, _UNARY_PYTHON), key=lambda name: _median(values, name))
            for name in (_SAMPLER, _CALL):
                report.bar(
                    f"p50 of {name}, over {fastest}",
                    _compare.ratio(values, name, fastest),
                    1.0,
                    at_most=True,
                )
    return report.finish()


def _median(values: _compare.Values, name: str) -> float:
    median = _compare.median(values, name)
    return median if median == median else float("inf")


if __name__ == "__main__":
    _process.run(main, side)
