"""Acme's agents, unmodified, on dm-reverb and on gear_reverb: tables, learning, time per step.

    python examples/acme/compare.py [--seeds 3] [--blocks N] [--check]

Two trainings of an agent at a time, one on each library, take turns of a block of learner steps,
in an order that reverses every round. The tables and the shapes of what they hold must be the
same. Prints the time per learner step and what was learnt, draws docs/images/acme_curves.svg, and
writes benchmarks/results/acme.json; with --agents only some are trained, and nothing is written.
Status 1 if tables differ or, with --check, a bar is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURE = ROOT / "docs/images/acme_curves.svg"
sys.path.insert(0, str(ROOT / "benchmarks"))
import _harness  # noqa: E402
from picture import draw  # noqa: E402

SIDES = {"dm-reverb": [], "gear_reverb": ["-m", "gear_reverb", "run"]}
LIBRARIES = {"dm-reverb": "reverb", "gear_reverb": "gear_reverb"}
# Blocks of 100 learner steps, enough to learn.
AGENTS = {"DQN, CartPole": 40, "R2D2, Catch": 15, "D4PG, Pendulum": 60}
BLOCK_STEPS = 100
# Filling the table, tracing the functions and warming up.
UNCOUNTED_BLOCKS = 3
CURVE_POINTS = 100
BAR = 1.05


class Training:
    """train.py in a process of its own, on one of the libraries."""

    def __init__(self, side: str, agent: str, seed: int, blocks: int, home: str):
        self._name = f"{agent} on {side}"
        command = [sys.executable, *SIDES[side], HERE / "train.py", agent]
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [
                *map(str, command),
                f"--seed={seed}",
                f"--blocks={blocks}",
                f"--block-steps={BLOCK_STEPS}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            # Where Acme keeps its snapshots.
            env={**os.environ, "HOME": home, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def block(self) -> dict[str, float]:
        """Lets it train for a block of learner steps; the seconds that this took."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.read()

    def read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            sys.exit(f"{self._name} ended:\n{self._log.read().decode(errors='replace')[-3000:]}")
        return json.loads(line)


def train(agent: str, seed: int, blocks: int) -> dict[str, dict[str, Any]]:
    """Trains on both libraries in turns; of each what it ended with, and `blocks`' times."""
    with (
        tempfile.TemporaryDirectory() as home,
        Training("dm-reverb", agent, seed, blocks, home) as first,
        Training("gear_reverb", agent, seed, blocks, home) as second,
    ):
        trainings = {"dm-reverb": first, "gear_reverb": second}
        turns = {side: training.block for side, training in trainings.items()}
        times = _harness.alternate(turns, blocks)
        results = {side: training.read() for side, training in trainings.items()}
    for side, result in results.items():
        assert result["library"] == LIBRARIES[side], result["library"]
        result["blocks"] = times[side][UNCOUNTED_BLOCKS:]
        result["curve"] = shorten(result["curve"])
    return results


def shorten(curve: list[list[float]]) -> list[list[float]]:
    """Neighbouring episodes made one, with their mean return, where there are very many."""
    size = -(-len(curve) // CURVE_POINTS)
    groups = [curve[at : at + size] for at in range(0, len(curve), size)]
    return [[group[-1][0], statistics.fmean(value for _, value in group)] for group in groups]


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    """The paths at which two nests of dicts differ, with both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        found = [differences(left.get(k), right.get(k), f"{path}/{k}") for k in {**left, **right}]
        return sum(found, [])
    return [] if left == right else [f"{path}: {left!r} and {right!r}"]


def learnt(curve: list[list[float]]) -> tuple[float, float]:
    """The mean return of the first and of the last fifth of the environment's steps."""
    total = curve[-1][0]
    early = [value for step, value in curve if step <= total / 5]
    late = [value for step, value in curve if step > total * 4 / 5]
    return statistics.fmean(early or [curve[0][1]]), statistics.fmean(late or [curve[-1][1]])


def case_of(runs: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Milliseconds per learner step of every block, the curves, and the tables."""

    def per_step(side: str, kind: str) -> list[float]:
        return [1e3 * block[kind] / BLOCK_STEPS for run in runs for block in run[side]["blocks"]]

    return {
        "unit": "milliseconds per learner step, a block each",
        "rounds": {side: per_step(side, "seconds") for side in SIDES},
        "cpu_rounds": {side: per_step(side, "cpu_seconds") for side in SIDES},
        "curves": {side: [run[side]["curve"] for run in runs] for side in SIDES},
        "tables": runs[0]["gear_reverb"]["tables"],
    }


def rows_of(agent: str, case: dict[str, Any]) -> list[list[str]]:
    """A line for each library: the time per step, and what was learnt."""
    rows = []
    for side in SIDES:
        ends = [learnt(curve) for curve in case["curves"][side]]
        returns = (f"{statistics.fmean(values):.1f}" for values in zip(*ends))
        wall = _harness.Summary.of(case["rounds"][side]).show(".2f")
        cpu = f"{statistics.median(case['cpu_rounds'][side]):.2f}"
        rows.append([f"{agent}, {side}", wall, cpu, *returns])
    return rows


def bar_of(agent: str, case: dict[str, Any]) -> _harness.Bar:
    ours, theirs = (statistics.median(case["rounds"][s]) for s in ("gear_reverb", "dm-reverb"))
    return _harness.Bar(f"{agent}: wall time per learner step", ours / theirs, BAR, at_most=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each agent")
    parser.add_argument(
        "--blocks", type=int, help="of 100 learner steps; by default enough to learn"
    )
    parser.add_argument("--check", action="store_true", help="status 1 if a bar is missed")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    arguments = parser.parse_args()
    if arguments.blocks is not None and arguments.blocks <= UNCOUNTED_BLOCKS:
        parser.error(f"--blocks must be more than {UNCOUNTED_BLOCKS}, which do not count")

    cases, bars, rows, faults = {}, [], [], []
    everything = set(arguments.agents) == set(AGENTS)
    for agent in arguments.agents:
        runs = []
        for seed in range(arguments.seeds):
            print(f"{agent}, seed {seed}", flush=True)
            runs.append(train(agent, seed, arguments.blocks or AGENTS[agent]))
            sides = (runs[-1][side]["tables"] for side in SIDES)
            faults += [f"{agent}: {found}" for found in differences(*sides)]
        cases[agent] = case_of(runs)
        rows += rows_of(agent, cases[agent])
        bars.append(bar_of(agent, cases[agent]))
        if everything:  # With what there is so far.
            _harness.write_results("acme", cases, bars)
            draw(PICTURE, {name: case["curves"] for name, case in cases.items()})

    headings = ["agent, library", "ms per learner step", "of CPU", "first returns", "last returns"]
    console = _harness.print_table("Acme's agents side by side", headings, rows)
    _harness.print_bars(bars, console)
    for fault in faults:
        print(f"differs: {fault}")
    print("tables and shapes: " + ("they differ" if faults else "the same"))
    return 1 if faults or (arguments.check and not all(bar.met for bar in bars)) else 0


if __name__ == "__main__":
    sys.exit(main())
