"""How fast does a TrajectoryWriter get items into a server, beside dm-reverb's?

    python benchmarks/core_writer.py [--rounds 7] [--only gear_reverb]

Needs an environment with both packages (`scripts/setup_compat.sh` makes .venv-compat). Each round
starts a server process and a writer process anew for each implementation, in alternation. Both get
the same steps, the same chunk lengths and the same flushes. The clock runs from the first measured
`append` until the server has confirmed the last item. Bytes are those of the items' payload,
uncompressed, each step counted once; the payload is noise, which no compression shortens.
"""

import argparse
import contextlib
import dataclasses
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

_IMPLEMENTATIONS = {"gear_reverb": "gear_reverb", "dm-reverb": "reverb"}
_BAR = 1.5
_POOL = 64  # Different steps; more would measure the cache.


@dataclasses.dataclass(frozen=True)
class Workload:
    """Steps of one float32 column; an item of `steps` every `stride` steps."""

    name: str
    width: int  # Floats a step.
    steps: int
    stride: int
    items: int
    flush_every: int  # Items; a flush leaves at most as many unconfirmed.

    @property
    def step_bytes(self) -> int:
        return 4 * self.width

    @property
    def total_bytes(self) -> int:
        return self.items * self.stride * self.step_bytes


_WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("transition of 1 step, 4 floats", 4, 1, 1, 40_000, 100),
        Workload("transition of 2 steps, 4 floats", 4, 2, 1, 40_000, 100),
        Workload("sequence of 16 steps, 64 KiB", 1024, 16, 16, 3_000, 20),
    )
}


def serve(implementation: str) -> None:
    """Serves one large table on a port that it prints, until the end of its input."""
    reverb = importlib.import_module(_IMPLEMENTATIONS[implementation])
    table = reverb.Table(
        name="table",
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=1_000_000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server([table])
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()


def write(implementation: str, workload: Workload, port: int) -> None:
    """Writes the workload and prints its seconds."""
    reverb = importlib.import_module(_IMPLEMENTATIONS[implementation])
    noise = np.random.default_rng(0).standard_normal((_POOL, workload.width), np.float32)
    steps = [{"x": row} for row in noise]
    client = reverb.Client(f"localhost:{port}")
    with client.trajectory_writer(num_keep_alive_refs=workload.steps) as writer:
        writer.configure(
            ("x",), num_keep_alive_refs=workload.steps, max_chunk_length=workload.steps
        )
        _write_items(writer, workload, steps, workload.items // 20)  # Warms both sides up.
        start = time.perf_counter()
        _write_items(writer, workload, steps, workload.items)
        seconds = time.perf_counter() - start
    size = client.server_info()["table"].current_size
    expected = workload.items + workload.items // 20
    if size != expected:
        raise RuntimeError(f"the table holds {size} items, not {expected}")
    print(json.dumps(seconds))


def _write_items(writer, workload: Workload, steps: list, items: int) -> None:
    for _ in range(workload.steps - workload.stride):
        writer.append(steps[0])
    index = 0
    for item in range(1, items + 1):
        for _ in range(workload.stride):
            writer.append(steps[index % _POOL])
            index += 1
        writer.create_item("table", 1.0, {"x": writer.history["x"][-workload.steps :]})
        if item % workload.flush_every == 0:
            writer.flush(block_until_num_items=workload.flush_every)
    writer.end_episode()


def measure(implementation: str, workload: Workload) -> float:
    """Items per second of one server and one writer, each a new process."""
    with _server(implementation) as port:
        return workload.items / float(_run("--write", implementation, workload.name, port))


@contextlib.contextmanager
def _server(implementation: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", implementation],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError(f"the server of {implementation} did not start")
        yield port
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _run(*args: str) -> str:
    command = [sys.executable, __file__, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(args)} failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


def compare(implementations: list[str], rounds: int) -> bool:
    import _harness

    rows, cases, bars = [], {}, []
    for workload in _WORKLOADS.values():
        results = _harness.alternate(
            {name: lambda name=name: measure(name, workload) for name in implementations},  # noqa: B023
            rounds,
        )
        medians = {}
        for name, values in results.items():
            summary = _harness.Summary.of(values)
            medians[name] = summary.median
            megabytes = summary.median * workload.stride * workload.step_bytes / 1e6
            rows.append((workload.name, name, summary.show(), f"{megabytes:,.1f}", ""))
        if len(medians) == 2:
            ratio = medians["gear_reverb"] / medians["dm-reverb"]
            rows[-2] = (*rows[-2][:4], f"{ratio:.2f}")
            bars.append(_harness.Bar(f"{workload.name}, items/s over dm-reverb", ratio, _BAR))
        cases[workload.name] = dataclasses.asdict(workload) | {"items_per_second": results}
    console = _harness.print_table(
        f"TrajectoryWriter, medians and quartiles of {rounds} rounds",
        ("workload", "implementation", "items/s", "MB/s", "ratio"),
        rows,
    )
    _harness.print_bars(bars, console)
    if bars:
        console.print(_harness.write_results("core_writer", cases, bars))
    return all(bar.met for bar in bars)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=_IMPLEMENTATIONS, help="measure one; writes no results")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is not met")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
    elif arguments.write:
        implementation, workload, port = arguments.write
        write(implementation, _WORKLOADS[workload], int(port))
    else:
        chosen = [arguments.only] if arguments.only else list(_IMPLEMENTATIONS)
        met = compare(chosen, arguments.rounds)
        return 1 if arguments.check and not met else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
