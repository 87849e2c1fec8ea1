"""How fast are batches by `device="cpu"`, the twin of the GPU's kernels?

    python benchmarks/compare/device_twin.py [--quick] [--only memcpy]

Uniform draws from a filled table, in the server's process and across processes over shared memory;
the bytes are those of the items' payload. The bars are those of batches without a device. What each
side does:

- gear_reverb, twin: `Client.batch_sampler(..., device="cpu")`: the host draws, the twin gathers.
- gear_reverb, twin draws: with `draw="device"`, in process alone: the twin draws as well.
- gear_reverb: without a device.
- memcpy, dm-reverb: as `sample_in_process.py` and `sample_across_processes.py` have them.
"""

import contextlib

import _compare
import _process
import _samplers
from _workloads import EVEN, KIB_64, SMALL, WORKLOADS

_OURS, _TWIN = _compare.OURS, f"{_compare.OURS}, twin"
_DRAWS = f"{_compare.OURS}, twin draws"
_OPTIONS = {_OURS: {}, _TWIN: {"device": "cpu"}, _DRAWS: {"device": "cpu", "draw": "device"}}
_HERE = "0"  # Instead of a port: the server is in the side's process.


def side(name: str, workload_name: str, port: str) -> None:
    workload, address, plane = WORKLOADS[workload_name], f"localhost:{port}", "shared-memory"
    server = None  # Lives as long as this call.
    if port == _HERE and name != "memcpy":
        implementation = _compare.implementation_of(name)
        server, address = _samplers.server_in_process(implementation, workload)
        plane = "in-process"
    if name == "memcpy":
        draw = _samplers.memcpy(workload)
    elif name == "dm-reverb":
        draw = _samplers.dm_reverb(workload, address)
    else:
        draw = _samplers.gear_reverb(workload, address, plane, **_OPTIONS[name])
    _process.answer(lambda seconds: _process.rate(draw, seconds))
    del server


def measure(workload, across: bool, options: _compare.Options) -> _compare.Values:
    names = [_TWIN, *([] if across else [_DRAWS]), _OURS, "memcpy"]
    names += options.pick(["dm-reverb"], [])
    with contextlib.ExitStack() as stack:
        ports = {}
        if across:
            ports = _compare.serve(stack, workload, names, options, workload.items)
            names = _compare.served(names, ports)
        ports = {name: ports.get(_compare.implementation_of(name), _HERE) for name in names}
        return _compare.alternate(
            {name: _process.start_of(__file__, name, workload.name, ports[name]) for name in names},
            options,
        )


def main() -> int:
    options = _compare.parse(__doc__)
    report = _compare.Report(
        "device_twin",
        "Batches by the kernels' twin",
        options,
        ("items", "side", "MB/s of payload", "/ memcpy", "/ dm-reverb"),
    )
    for across in options.pick((False, True), (False,)):
        for workload in options.pick(EVEN, (KIB_64,)):
            results = measure(workload, across, options)
            title = f"{workload.title}, {'across processes' if across else 'in process'}"
            report.add(
                title,
                results,
                unit="bytes/s",
                scale=1e-6,
                over=("memcpy", "dm-reverb"),
                workload=workload.name,
                batch=workload.batch,
                item_bytes=workload.item_bytes,
            )
            for twin in (_TWIN,) if across else (_TWIN, _DRAWS):
                over = {
                    peer: _compare.ratio(results, twin, peer) for peer in ("memcpy", "dm-reverb")
                }
                what = f"{title}: {twin.partition(', ')[2]} over"
                if workload is not SMALL:
                    report.bar(f"{what} memcpy", over["memcpy"], 0.6 if across else 0.7)
                if workload is SMALL or across:
                    bar = (12 if across else 8) if workload is SMALL else 6
                    report.bar(f"{what} dm-reverb", over["dm-reverb"], bar)
    return report.finish()


if __name__ == "__main__":
    _process.run(main, side)
