"""Runs a comparison: sides in processes of their own, rounds in alternation, table, bars, file."""

import argparse
import contextlib
import dataclasses
import math
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_BENCHMARKS))

import _harness  # noqa: E402
from _process import Side, SideFailed  # noqa: E402

OURS = "gear_reverb"
FORCE_GRPC = {"GEAR_REVERB_DATA_PLANE": "grpc"}
_SERVERS = (OURS, "dm-reverb")
QUICK_RESULTS = _BENCHMARKS.parent / "build" / "bench"
FULL_RESULTS = _BENCHMARKS / "results"

StartSide = Callable[[], Side]
Values = dict[str, list[float]]


@dataclasses.dataclass(frozen=True)
class Options:
    """How long to measure, what, and what to do with the outcome."""

    quick: bool
    rounds: int
    seconds: float
    only: tuple[str, ...]
    check: bool

    def pick(self, full: Any, quick: Any) -> Any:
        return quick if self.quick else full

    def wants(self, side: str) -> bool:
        """Whether to measure a side: `--only` names the beginnings of those wanted."""
        return not self.only or side.startswith(self.only)


def parse(description: str, *, rounds: int = 7, seconds: float = 0.4) -> Options:
    """The arguments that all comparisons have; `--quick` means 3 rounds of a third of the time."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes, rounds and peers")
    parser.add_argument("--rounds", type=int, help=f"by default {rounds}; 3 if quick")
    parser.add_argument("--seconds", type=float, help=f"of a round of a side, default {seconds:g}")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SIDE",
        help="measure sides that start so; may be repeated; writes no results",
    )
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is not met")
    given = parser.parse_args()
    options = Options(
        quick=given.quick,
        rounds=given.rounds or (3 if given.quick else rounds),
        seconds=given.seconds or (seconds / 3 if given.quick else seconds),
        only=tuple(given.only),
        check=given.check,
    )
    if options.rounds < 1 or not options.seconds > 0:
        parser.error("--rounds and --seconds must be positive")
    return options


def alternate(sides: Mapping[str, StartSide], options: Options) -> dict[str, list[Any]]:
    """Starts every side anew, lets them take turns, ends them; what each answered, by round.

    A peer that cannot start, or fails, is left out with a word; our own failure is an error.
    """
    with contextlib.ExitStack() as stack:
        running: dict[str, Side] = {}
        for name, start in sides.items():
            if options.wants(name):
                with _tolerating(name):
                    running[name] = stack.enter_context(start())
        for name in list(running):
            with _tolerating(name, running):
                running[name].wait_ready()
        results: dict[str, list[Any]] = {}

        def turn(name: str) -> Any:
            if name in running:
                with _tolerating(name, running):
                    return running[name].ask(options.seconds)
            return None

        cases = {name: lambda name=name: turn(name) for name in running}
        for name, values in _harness.alternate(cases, options.rounds).items():
            if name in running:
                results[name] = values
        return results


def implementation_of(side: str) -> str:
    """The implementation whose server a side needs: its name up to the first comma."""
    return side.split(",")[0]


def served(sides: Iterable[str], ports: Mapping[str, int]) -> list[str]:
    """The sides whose server is there, and those that need none."""
    return [
        side
        for side in sides
        if implementation_of(side) in ports or implementation_of(side) not in _SERVERS
    ]


def serve(
    stack: contextlib.ExitStack, workload: Any, sides: Iterable[str], options: Options, items: int
) -> dict[str, int]:
    """Starts `_serve.py` for each implementation that a side needs; ports by implementation.

    Args:
      stack: Ends the servers.
      items: Items of the table `table`, which is full with them.
    """
    wanted = dict.fromkeys(implementation_of(side) for side in sides if options.wants(side))
    starting = {}
    for name in wanted:
        if name in _SERVERS:
            starting[name] = stack.enter_context(Side("_serve.py", name, workload.name, items))
    ports = {}
    for name, side in starting.items():
        with _tolerating(name):
            ports[name] = side.wait_ready().ready
    return ports


@contextlib.contextmanager
def _tolerating(name: str, running: dict[str, Side] | None = None):
    try:
        yield
    except SideFailed as failure:
        if name.startswith(OURS):
            raise
        print(f"left out: {name}: {failure}", file=sys.stderr, flush=True)
        if running is not None:
            running.pop(name, None)


def median(results: Mapping[str, list[float]], side: str) -> float:
    """NaN where the side was not measured."""
    return _harness.Summary.of(results[side]).median if results.get(side) else math.nan


def ratio(results: Mapping[str, list[float]], side: str, other: str) -> float:
    """Of the medians; NaN where one is missing."""
    return median(results, side) / median(results, other)


class Report:
    """Collects a comparison's rows, cases and bars; prints and writes them at the end."""

    def __init__(self, name: str, title: str, options: Options, headings: Iterable[str]):
        self._name, self._title, self._options = name, title, options
        self._headings = tuple(headings)
        self._rows: list[tuple[str, ...]] = []
        self._cases: dict[str, Any] = {}
        self._bars: list[_harness.Bar] = []
        self._start = time.monotonic()

    def add(
        self,
        case: str,
        results: Values,
        *,
        unit: str,
        scale: float = 1.0,
        form: str = ",.0f",
        over: Iterable[str] = (),
        **facts: Any,
    ) -> None:
        """A row per side: median and quartiles, and the ratios to the sides `over`."""
        for index, (side, values) in enumerate(results.items()):
            scaled = _harness.Summary.of([value * scale for value in values])
            ratios = [f"{ratio(results, side, other):,.2f}" for other in over]
            self._rows.append((case if index == 0 else "", side, scaled.show(form), *ratios))
        self._cases[case] = {"unit": unit, "scale": scale, **facts, "rounds": results}

    def bar(self, name: str, measured: float, required: float, at_most: bool = False) -> None:
        self._bars.append(_harness.Bar(name, measured, required, at_most))

    def finish(self) -> int:
        """The exit status."""
        subtitle = f"{self._title}; medians and quartiles of {self._options.rounds} rounds"
        console = _harness.print_table(subtitle, self._headings, self._rows)
        if not self._options.only:
            _harness.print_bars(self._bars, console)
            directory = QUICK_RESULTS if self._options.quick else FULL_RESULTS
            path = _harness.write_results(self._name, self._cases, self._bars, directory)
            console.print(f"{path}, {time.monotonic() - self._start:.0f} s\n")
        missed = any(not bar.met for bar in self._bars)
        return 1 if self._options.check and missed and not self._options.only else 0
