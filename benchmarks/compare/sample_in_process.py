"""How fast are batches drawn where server and consumer share a process?

    python benchmarks/compare/sample_in_process.py [--quick] [--only gear_reverb --only memcpy]

Uniform draws from a filled table; the bytes are those of the items' payload. Every side is a
process of its own. What each does:

- gear_reverb: `Client.batch_sampler` with its defaults (two batches ahead), and with `prefetch=0`.
- memcpy: one thread copies a batch as one block, see `_samplers.memcpy`: the limit.
- dm-reverb: `TrajectoryDataset(...).batch(n)` on a server of the same process.
- cpprb: `ReplayBuffer.sample`.   - flashbax: a jitted item buffer on JAX's CPU device.
- torchrl: `TensorDictReplayBuffer` over `LazyTensorStorage`.

The last three have no server: they are arrays in the consumer's memory.
"""

import _compare
import _process
import _samplers
from _workloads import EVEN, KIB_64, SMALL, WORKLOADS

_OURS, _UNAHEAD = _compare.OURS, f"{_compare.OURS}, prefetch=0"
_PEERS = ("dm-reverb", "cpprb", "flashbax", "torchrl")


def side(name: str, workload_name: str) -> None:
    workload = WORKLOADS[workload_name]
    server = None  # Lives as long as this call.
    if name in (_OURS, _UNAHEAD):
        server, address = _samplers.server_in_process("gear_reverb", workload)
        prefetch = 0 if name == _UNAHEAD else 2
        draw = _samplers.gear_reverb(workload, address, "in-process", prefetch=prefetch)
    elif name == "dm-reverb":
        server, address = _samplers.server_in_process("dm-reverb", workload)
        draw = _samplers.dm_reverb(workload, address)
    else:
        draw = getattr(_samplers, name)(workload)
    _process.answer(lambda seconds: _process.rate(draw, seconds))
    del server


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "sample_in_process",
        "Batches drawn in one process",
        options,
        ("items", "side", "MB/s of payload", "/ memcpy", "/ dm-reverb"),
    )
    names = [_OURS, _UNAHEAD, "memcpy", *options.pick(_PEERS, _PEERS[:1])]
    for workload in options.pick(EVEN, (SMALL, KIB_64)):
        results = _compare.alternate(
            {name: _process.start_of(__file__, name, workload.name) for name in names}, options
        )
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
        if workload is SMALL:
            over_peer = _compare.ratio(results, _OURS, "dm-reverb")
            report.bar(f"{workload.title}: over dm-reverb", over_peer, 8)
        else:
            over_copy = _compare.ratio(results, _OURS, "memcpy")
            report.bar(f"{workload.title}: over memcpy", over_copy, 0.7)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
