"""Checks and times collection on one GPU, or on the CPU's twin; see scripts/gpu_check.sh.

    python benchmarks/gpu/gpu_check.py --device cuda:0 --result FILE [--commit NAME] [--small]

Fresh random data at every run. Prints a line per step and the ratios; the result file has all
numbers, and the tracebacks of what failed. Every step that uses the GPU does so in another process,
so that one that crashes, hangs or spoils the GPU's context leaves the others alone. Nothing but
NumPy is needed; PyTorch, JAX and CuPy are used where they are. --small takes the same steps with
little data, to prove them where there is no GPU: its figures mean nothing.
"""

import argparse
import contextlib
import datetime
import importlib
import os
import pathlib
import secrets
import sys
from collections.abc import Callable
from typing import Any

import gpu_bars
import gpu_batches
import gpu_draws
import gpu_equal
import gpu_fences
import gpu_gathers
import gpu_index_select
import gpu_machine
import gpu_ragged
import gpu_sanitizer
import gpu_selection
import numpy as np
from gpu_report import Report

from gear_reverb import _native, cuda

REPEATS = 7


def unmeasured(work: Callable[..., Any], *arguments: Any) -> Any:
    """Where the ways of gathering need not be tried out, which takes seconds."""
    os.environ["GEAR_REVERB_MEASURE"] = "0"
    return work(*arguments)


def kernels_are_like_their_twins(gpu: int, small: bool) -> dict[str, Any]:
    seed, rounds = secrets.randbits(32), 1 if small else 10
    differences = _native.cuda_self_test(gpu, seed, rounds, large=not small)
    assert not differences, "\n".join(differences)
    return {"seed": seed, "rounds": rounds}


def an_open_device(device: str, out: str) -> dict[str, Any]:
    """What a device tells of itself while a sampler uses it, and how it came to gather so."""
    with (
        gpu_equal.a_client(np.random.default_rng(), "host") as client,
        client.batch_sampler("t", 8, ragged="pad", device=device, out=out) as sampler,
    ):
        next(sampler)
        return cuda.stats() | {"of the sampler": sampler.device_stats()}


def ceilings(gpu: int, small: bool) -> dict[str, Any]:
    """Bytes per second of large copies, and the GPU's link and clocks just afterwards."""
    size = 1 << (20 if small else 30)
    rates = {
        place: _native.cuda_measure_copy(gpu, place, size, REPEATS) for place in ("host", "device")
    }
    return rates | {"gpus": gpu_machine.gpus()}


def frameworks(device: str) -> tuple[str, ...]:
    return ("numpy",) if device == "cpu" else ("torch", "cupy", "jax")


def check(report: Report, device: str, gpu: int | None, small: bool) -> None:
    """That everything is as the twin has it."""
    if gpu is not None:
        name, work = gpu_bars.KERNELS, kernels_are_like_their_twins
        report.apart((name, unmeasured, work, gpu, small))
        if name in report.failed:  # Without the kernels that would be tried out.
            os.environ["GEAR_REVERB_MEASURE"] = "0"
    report.apart((gpu_bars.SELECTION, gpu_selection.is_like_its_twin, gpu, small))
    work = gpu_selection.draws_are_like_their_twins
    report.apart(("draws' kernels are like their twins", unmeasured, work, gpu))
    report.apart(("the device", an_open_device, device, "numpy" if gpu is None else "dlpack"))
    if "the device" in report.failed:
        os.environ["GEAR_REVERB_MEASURE"] = "0"
    for out in frameworks(device):
        draws, on = "draws are the twin's", (device, out)
        report.apart(
            (f"batches are equal: {out}", gpu_equal.batches_are_equal, *on),
            (f"{draws}: {out}, from the host", gpu_draws.draws_are_those_of_the_twin, *on, "host"),
            (
                f"{draws}: {out}, from the device",
                gpu_draws.draws_are_those_of_the_twin,
                *on,
                "device",
            ),
            (
                f"first items are the twin's: {out}",
                gpu_draws.first_items_are_those_of_the_twin,
                *on,
            ),
            (f"W4 is as without a device: {out}", gpu_ragged.is_as_without_a_device, *on, small),
        )
        if out == "jax":
            report.apart(("JAX's memory is kept", gpu_fences.memory_of_jax_is_kept, device))
        if out == frameworks(device)[0]:
            # CUDA graphs are captured by PyTorch, here in a process that has launched nothing yet.
            report.apart(("replays are the twin's", gpu_draws.replays_are_those_of_the_twin, *on))


def measure(report: Report, device: str, gpu: int | None, small: bool) -> None:
    """What the bars need."""
    on = (device, frameworks(device)[0])
    copies: dict[str, Any] = {}
    if gpu is not None:
        report.apart(("ceilings", ceilings, gpu, small))
        copies = report.values.get("ceilings", {})
        gathers(report, gpu, copies, "", gpu_gathers.BATCHES, small)
    report.apart(("selection", gpu_selection.rates, gpu, small))
    # Here, so that the processes need not do it; it leaves the GPU alone.
    with contextlib.suppress(Exception):
        importlib.import_module("torch")
    from_host, there = copies.get("host", 0), copies.get("device", 0)
    report.apart(("whole batches", gpu_batches.whole, *on, from_host, small))
    report.apart(("whole batches of W4", gpu_ragged.rates, *on, from_host, small))
    tier = gpu_batches.through_the_tier
    report.apart(("tier", tier, *on, there, "host", small))
    report.apart(("tier, drawn by the device", tier, *on, there, "device", small))
    if gpu is not None:
        report.apart(("index_select", unmeasured, gpu_index_select.compared, gpu))


def gathers(
    report: Report, gpu: int, copies: dict[str, Any], which: str, batches: Any, small: bool
) -> None:
    for place in ("host", "device"):
        if place in copies:
            work = (gpu_gathers.rates, gpu, place, copies[place], batches, small)
            report.apart((f"gather from {place}{which}", unmeasured, *work))


def measure_more(
    report: Report, device: str, gpu: int | None, small: bool, logs: pathlib.Path | None
) -> None:
    """What no bar needs."""

    def sanitize(tool: str) -> None:
        if gpu is not None and logs is not None:
            arguments = (tool, gpu, logs, report.seconds_left())
            report.here(f"compute-sanitizer: {tool}", gpu_sanitizer.watch, *arguments)

    sanitize("memcheck")
    report.apart(("rates of draws", gpu_draws.rates, device, frameworks(device)[0], small))
    report.apart(("strategies", gpu_selection.strategies, gpu, small))
    sanitize("racecheck")
    sanitize("synccheck")
    if gpu is not None:
        copies = report.values.get("ceilings", {})
        gathers(report, gpu, copies, ", more batches", gpu_gathers.MORE_BATCHES, small)


def run(report: Report, options: argparse.Namespace) -> None:
    device, small = options.device, options.small
    gpu = None if device == "cpu" else int(device.partition(":")[2] or 0)
    report.values["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
    report.values["commit"] = options.commit
    report.values["small"] = small
    report.here("machine", gpu_machine.describe)
    report.apart(("cuda", cuda.stats))
    if gpu is not None:
        found = report.values.get("cuda", {"why_not": "asking for it failed"})
        report.values["why_not"] = found["why_not"]
        if found["why_not"]:
            report.fail("a GPU that can be used", found["why_not"])
            return
    check(report, device, gpu, small)
    measure(report, device, gpu, small)
    if gpu is not None:
        report.here("bars", gpu_bars.bars, report.values)
    measure_more(report, device, gpu, small, options.logs)
    report.values["complete"] = True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--result", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=300, help="no step starts after so long")
    parser.add_argument(
        "--logs", type=pathlib.Path, help="where compute-sanitizer's go; it needs it"
    )
    options = parser.parse_args()
    report = Report(options.device, options.result, options.seconds)
    try:
        run(report, options)
    finally:
        report.write()
    print(f"{len(report.failed)} failed; {report.values['seconds']:.0f} s; {options.result}")
    return bool(report.failed)


if __name__ == "__main__":
    sys.exit(main())
