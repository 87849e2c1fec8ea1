"""Checks and times collection on one GPU, or on the CPU's twin; see scripts/gpu_check.sh.

    python benchmarks/gpu_check.py --device cuda:0 --result FILE [--commit NAME] [--small]

Fresh random data at every run. Prints a line per step and the ratios; the result file has all
numbers. Nothing but NumPy is needed; PyTorch, JAX and CuPy are used where they are. --small takes
the same steps with little data, to prove them where there is no GPU: its figures mean nothing.
"""

import argparse
import datetime
import importlib
import os
import pathlib
import secrets
import sys
from collections.abc import Iterator
from typing import Any, Literal

import gpu_batches
import gpu_draws
import gpu_gathers
import numpy as np
from gpu_report import Report, apart

import gear_reverb
from gear_reverb import _native, cuda, rate_limiters, selectors

REPEATS = 7


def kernels_are_like_their_twins(gpu: int, small: bool) -> dict[str, Any]:
    seed, rounds = secrets.randbits(32), 1 if small else 10
    differences = _native.cuda_self_test(gpu, seed, rounds, large=not small)
    assert not differences, "\n".join(differences)
    return {"seed": seed, "rounds": rounds}


def as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get"):  # CuPy
        return array.get()
    if hasattr(array, "cpu"):  # PyTorch
        array = array.cpu()
        if array.dtype == importlib.import_module("torch").bfloat16:
            return array.float().numpy()
        return array.numpy()
    return np.asarray(array)


def batches_are_equal(device: str, out: str) -> dict[str, Any]:
    """A server, its tables and samplers, with and without the device, of equal seeds."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    compared = 0
    for placement in ("host", "device"):
        server, client = serve(rng, placement)
        try:
            compared += bytes_compared(client, device, out, seed)
        finally:
            server.stop()
    return {"seed": seed, "bytes": compared}


def bytes_compared(client: gear_reverb.Client, device: str, out: str, seed: int) -> int:
    compared = 0
    for ragged in ("pad", "pack"):
        options = {"ragged": ragged, "seed": seed, "beta": 0.6, "prefetch": 2}
        with (
            client.batch_sampler("t", 64, **options) as plain,
            client.batch_sampler("t", 64, device=device, out=out, **options) as other,
        ):
            for _, a, b in zip(range(10), plain, other):
                np.testing.assert_array_equal(a.info.key, b.info.key)
                pairs = [*zip(a.data, b.data), (a.weights, b.weights), (a.lengths, b.lengths)]
                side = "mask" if ragged == "pad" else "cu_seqlens"
                pairs.append((getattr(a, side), getattr(b, side)))
                for x, y in pairs:
                    np.testing.assert_array_equal(x, as_numpy(y))
                    compared += x.nbytes
    return compared


def serve(
    rng: np.random.Generator, placement: Literal["host", "device"]
) -> tuple[gear_reverb.Server, gear_reverb.Client]:
    """A table of items of 1 to 300 steps, three columns of different kinds."""
    fifo = selectors.Fifo()
    limiter = rate_limiters.MinSize(1)
    prioritized = selectors.Prioritized(0.7)
    table = gear_reverb.Table("t", prioritized, fifo, 1000, limiter, placement=placement)
    server = gear_reverb.Server([table])
    client = server.localhost_client()
    with client.trajectory_writer(num_keep_alive_refs=300) as writer:
        for _ in range(200):
            steps = rng.integers(1, 300)
            for _ in range(steps):
                writer.append(
                    [
                        rng.standard_normal(11, np.float32),
                        rng.integers(0, 256, (7, 9), np.uint8),
                        rng.integers(0, 2**31, (), np.int32),
                    ]
                )
            columns = [column[-steps:] for column in writer.history]
            writer.create_item("t", float(rng.uniform(0.1, 5)), columns)
            writer.end_episode()
    return server, client


def ceilings(gpu: int, small: bool) -> dict[str, float]:
    return {
        place: _native.cuda_measure_copy(gpu, place, 1 << (20 if small else 30), REPEATS)
        for place in ("host", "device")
    }


def selection_is_like_its_twin(gpu: int | None, small: bool) -> dict[str, int]:
    seed = secrets.randbits(32)
    differences = _native.cuda_check_selection(gpu, seed, 2000 if small else 300_000)
    assert not differences, differences
    return {"seed": seed}


def draws_kernels_are_like_their_twins(gpu: int | None) -> dict[str, int]:
    seed = secrets.randbits(32)
    differences = _native.cuda_check_draws(gpu, seed, 30)
    assert not differences, differences
    return {"seed": seed}


def strategies(gpu: int | None, small: bool) -> Iterator[dict[str, float | str]]:
    """2^20 draws of every strategy from 10^6 items, and an order's first 1024, in milliseconds."""
    draws, items = (1 << 10, 3000) if small else (1 << 20, 10**6)
    for name in ("Uniform", "Prioritized", "Fifo", "Lifo", "MinHeap", "MaxHeap"):
        draw = _native.cuda_measure_draw(gpu, name, items, draws, REPEATS) * 1e3
        result: dict[str, float | str] = {"strategy": name, "items": items}
        result[f"draw {draws} ms"] = draw
        line = f"   {name} of {items} items: draw {draws} {draw:.3f} ms"
        if name not in ("Uniform", "Prioritized"):
            top = _native.cuda_measure_top(gpu, name, items, 1024, REPEATS) * 1e3
            result["first 1024 ms"] = top
            line += f", first 1024 {top:.3f} ms"
        print(line)
        yield result


def selections(gpu: int | None, small: bool) -> Iterator[dict[str, float]]:
    """Weighted draws and updates of priorities, in milliseconds."""
    draws = 1 << (10 if small else 20)
    for items in (10**3, 10**4) if small else (10**5, 10**6, 10**8):
        draw = _native.cuda_measure_draw(gpu, "Prioritized", items, draws, REPEATS) * 1e3
        update = _native.cuda_measure_update(gpu, items, 4096, 10 * REPEATS) * 1e3
        print(f"   {items} items: draw {draws} {draw:.3f} ms, update 4096 {update:.4f} ms")
        yield {"items": items, f"draw {draws} ms": draw, "update 4096 ms": update}


def driver() -> str:
    """The kernel module's version, as it says; "" without one."""
    try:
        return pathlib.Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except OSError:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--result", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=300, help="no step starts after so long")
    options = parser.parse_args()
    small = options.small
    report = Report(options.device, options.result, options.seconds)
    report.values["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
    report.values["commit"] = options.commit
    report.values["small"] = small
    report.values["driver"] = driver()
    report.values["memory"] = pathlib.Path("/proc/meminfo").read_text().splitlines()[0]
    on_gpu = options.device != "cpu"
    gpu = int(options.device.partition(":")[2] or 0) if on_gpu else None
    if on_gpu:
        name = "kernels are like their twins"
        report.step(name, apart, kernels_are_like_their_twins, gpu, small)
        if name in report.failed:  # Without the kernels that would be tried out.
            os.environ["GEAR_REVERB_MEASURE"] = "0"
    report.values["cuda"] = cuda.stats()
    if on_gpu and not cuda.is_available():
        print(f"FAILED: {cuda.why_not()}")
        return 1
    # While a sampler is open the device is: it tells of itself at the end.
    server, client = serve(np.random.default_rng(), "host")
    out = "dlpack" if on_gpu else "numpy"
    held = client.batch_sampler("t", 8, ragged="pad", device=options.device, out=out)
    report.step("a batch", lambda: len(next(held).data))
    check(report, options.device, gpu, small)
    measure(report, options.device, gpu, small)
    if on_gpu:
        report.step("bars", gpu_gathers.bars, report.values, always=True)
    report.values["the device at the end"] = held.device_stats()
    held.close()
    server.stop()
    report.write()
    print(f"{len(report.failed)} failed; {report.values['seconds']:.0f} s; {options.result}")
    return bool(report.failed)


def frameworks(device: str) -> tuple[str, ...]:
    return ("numpy",) if device == "cpu" else ("torch", "cupy", "jax")


def check(report: Report, device: str, gpu: int | None, small: bool) -> None:
    """That everything is as the twin has it."""
    report.step("selection is like its twin", selection_is_like_its_twin, gpu, small)
    report.step("draws' kernels are like their twins", draws_kernels_are_like_their_twins, gpu)
    for out in frameworks(device):
        report.step(f"batches are equal: {out}", batches_are_equal, device, out)
        draws = (device, out, as_numpy)
        for placement in ("host", "device"):
            report.step(
                f"draws are the twin's: {out}, from the {placement}",
                gpu_draws.draws_are_those_of_the_twin,
                *draws,
                placement,
            )
        first = gpu_draws.first_items_are_those_of_the_twin
        report.step(f"first items are the twin's: {out}", first, *draws)
    # CUDA graphs are captured by PyTorch.
    graphs = (device, frameworks(device)[0], as_numpy)
    report.step("replays are the twin's", gpu_draws.replays_are_those_of_the_twin, *graphs)


def measure(report: Report, device: str, gpu: int | None, small: bool) -> None:
    """What the bars need comes first."""
    out = frameworks(device)[0]
    rates = {}
    if gpu is not None:
        report.step("ceilings", ceilings, gpu, small)
        rates = report.values.get("ceilings", {})
    report.step("selection", selections, gpu, small)
    report.step("whole batches", gpu_batches.whole, device, out, rates.get("host", 0), small)
    if gpu is not None:
        report.step("index_select", gpu_gathers.against_index_select, gpu)
        for place, rate in rates.items():
            report.step(f"gather from {place}", gpu_gathers.rates, gpu, place, rate, small)
    tier = (device, out, rates.get("device", 0))
    report.step("tier", gpu_batches.through_the_tier, *tier, "host", small)
    report.step("tier, drawn by the device", gpu_batches.through_the_tier, *tier, "device", small)
    report.step("rates of draws", gpu_draws.rates, device, out, small)
    report.step("strategies", strategies, gpu, small)


if __name__ == "__main__":
    sys.exit(main())
