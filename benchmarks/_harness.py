"""What all benchmarks share: alternation, medians, where and when it ran, tables and files."""

import dataclasses
import datetime
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_PACKAGES = (
    *("gear-reverb", "dm-reverb", "cpprb", "flashbax", "torchrl", "tensordict"),
    *("numpy", "tensorflow", "torch", "jax", "jaxlib", "grpcio"),
    *("dm-acme", "dm-sonnet", "trfl", "tensorflow-probability"),
)


def alternate(cases: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Runs every case once a round, in turns that reverse every round; what each returned.

    A machine that slows down, or a neighbour that wakes up, so meets all cases alike.
    """
    results: dict[str, list[float]] = {name: [] for name in cases}
    for index in range(rounds):
        names = list(cases)
        for name in reversed(names) if index % 2 else names:
            results[name].append(cases[name]())
    return results


@dataclasses.dataclass(frozen=True)
class Summary:
    """Median and quartiles of one case's rounds."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        if len(values) < 2:
            return cls(values[0], values[0], values[0], 1)
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high, len(values))

    def show(self, form: str = ",.0f") -> str:
        return f"{self.median:{form}}  [{self.low:{form}} .. {self.high:{form}}]"


@dataclasses.dataclass(frozen=True)
class Bar:
    """What a measured ratio must reach; `at_most` turns it into what it must not exceed.

    Not a number where a side could not be measured: then the bar is not met.
    """

    name: str
    measured: float
    required: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        within = self.measured <= self.required if self.at_most else self.measured >= self.required
        return within


def print_bars(bars: Sequence[Bar], console: Console) -> None:
    for bar in bars:
        mark = "[bold green]met[/]" if bar.met else "[bold red]not met[/]"
        sign = "<=" if bar.at_most else ">="
        measured = "not measured" if math.isnan(bar.measured) else f"{bar.measured:.2f}"
        console.print(f"{mark}  {bar.name}: {measured} (bar {sign} {bar.required:g})")


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Console:
    """Prints to a console, which it returns for more."""
    console = Console(width=None if sys.stdout.isatty() else 125, highlight=False)
    table = Table(title=title, title_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return console


def write_results(
    name: str,
    cases: dict[str, Any],
    bars: Sequence[Bar],
    directory: pathlib.Path = _RESULTS,
) -> str:
    """Writes `<directory>/<name>.json`: bars, every round of every case, and the circumstances.

    Returns:
      The file's path from the root of the repository.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    content = {
        "benchmark": name,
        "arguments": sys.argv[1:],
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": _machine(),
        "versions": _versions(),
        "bars": [_bar_record(bar) for bar in bars],
        "cases": cases,
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return str(path.relative_to(_ROOT))


def _bar_record(bar: Bar) -> dict[str, Any]:
    measured = None if math.isnan(bar.measured) else bar.measured  # JSON has no NaN.
    return dataclasses.asdict(bar) | {"measured": measured, "met": bar.met}


def _commit() -> str:
    def git(*args: str) -> str:
        command = ["git", "-C", str(_ROOT), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        results = (":!benchmarks/results", ":!docs/images")  # Which a run writes itself.
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *results)
        return git("rev-parse", "HEAD") + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except OSError:
        memory = 0
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return versions
