"""Draws the pictures of the comparisons from their results.

    python benchmarks/compare/pictures.py [--quick] [--out docs/images]

Points are medians, the thin lines quartiles; of latencies, p50 and p99. A picture whose results
are not there is left out. Needs matplotlib.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))
import _harness  # noqa: E402

_ROOT = _HERE.parent.parent
# Okabe and Ito's palette, which the colour-blind can tell apart; the same side has the same colour.
_COLOURS = {
    "gear_reverb": "#0072B2",
    "gear_reverb, prefetch=0": "#56B4E9",
    "gear_reverb, gRPC": "#56B4E9",
    "memcpy": "#999999",
    "dm-reverb": "#D55E00",
    "cpprb": "#009E73",
    "flashbax": "#E69F00",
    "torchrl": "#CC79A7",
}
_SHORT = {
    "transitions, 2 steps of 4 floats": "small\ntransitions",
    "64 KiB, 16 steps": "64 KiB",
    "1 MiB, 16 steps": "1 MiB",
    "frames, 20 steps of 84x84x4 u8": "frames\n(564 KB)",
}


class Results:
    """One comparison's file."""

    def __init__(self, path: pathlib.Path):
        content = json.loads(path.read_text())
        self.cases: dict[str, dict[str, Any]] = content["cases"]
        machine = content["machine"]
        self.note = (
            f"{machine['cores']} cores of {machine['processor']}, commit {content['commit'][:10]}"
        )

    def summary(self, case: str, side: str) -> _harness.Summary | None:
        values = self.cases[case]["rounds"].get(side)
        scale = self.cases[case]["scale"]
        return _harness.Summary.of([value * scale for value in values]) if values else None


def _points(axis, results: Results, cases: Sequence[str], unit: str) -> None:
    """A point per case and side, with its number; on a logarithmic axis bars would have no foot."""
    sides = list(dict.fromkeys(side for case in cases for side in results.cases[case]["rounds"]))
    width = 0.8 / len(sides)
    for index, side in enumerate(sides):
        colour = _COLOURS.get(side, "#000000")
        for at, case in enumerate(cases):
            summary = results.summary(case, side)
            if summary is None:
                continue
            place = at + (index - (len(sides) - 1) / 2) * width
            spread = [[summary.median - summary.low], [summary.high - summary.median]]
            axis.errorbar(
                place,
                summary.median,
                spread,
                fmt="o",
                markersize=8,
                color=colour,
                ecolor="#333333",
                elinewidth=1,
                label=side if at == 0 else None,
            )
            axis.annotate(
                f"{summary.median:,.0f}",
                (place, summary.high),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color="#333333",
            )
    for at in range(1, len(cases)):
        axis.axvline(at - 0.5, color="#dddddd", linewidth=0.8)
    axis.set_xlim(-0.5, len(cases) - 0.5)
    axis.set_xticks(range(len(cases)), [_SHORT.get(case, case) for case in cases])
    axis.set_yscale("log")
    axis.margins(y=0.15)
    axis.grid(axis="y", color="#eeeeee")
    axis.set_ylabel(unit)


def sampling(read: Callable[[str], Results]) -> Any:
    figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained")
    for axis, name, where in zip(
        axes,
        ("sample_in_process", "sample_across_processes"),
        ("in the server's process", "from another process of the host"),
    ):
        results = read(name)
        _points(axis, results, list(results.cases), "payload drawn, MB/s")
        axis.set_title(f"Batches drawn {where}", loc="left")
        axis.legend(ncols=7, fontsize=7, frameon=False, loc="upper center", columnspacing=1)
        axis.set_ylim(top=axis.get_ylim()[1] * 5)
    figure.supxlabel(results.note, fontsize=7, color="#666666")
    return figure


def writing(read: Callable[[str], Results]) -> Any:
    results = read("write")
    cases = [case for case in results.cases if case.endswith("full")]
    figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    _points(axis, results, cases, "items/s")
    axis.set_xticks(range(len(cases)), [_SHORT[case.split("; ")[0]] for case in cases])
    axis.set_title("One TrajectoryWriter, full table, server in another process", loc="left")
    axis.legend(fontsize=8, frameon=False)
    figure.supxlabel(results.note, fontsize=7, color="#666666")
    return figure


def latency(read: Callable[[str], Results]) -> Any:
    results = read("latency")
    sides = list(results.cases["p50"]["rounds"])
    figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for at, side in enumerate(reversed(sides)):
        median, tail = (results.summary(quantile, side).median for quantile in ("p50", "p99"))
        colour = _COLOURS["gear_reverb"] if "sample" in side else _COLOURS["memcpy"]
        axis.plot([median, tail], [at, at], color="#333333", linewidth=0.8, marker="|")
        axis.plot(median, at, "o", color=_COLOURS["dm-reverb"] if "dm-" in side else colour)
        axis.text(tail * 1.1, at, f"{median:,.0f}, p99 {tail:,.0f}", va="center", fontsize=8)
    axis.set_yticks(range(len(sides)), list(reversed(sides)), fontsize=8)
    axis.set_xscale("log")
    axis.set_xlim(right=axis.get_xlim()[1] * 4)
    axis.set_ylim(-0.5, len(sides) - 0.5)
    axis.grid(axis="x", color="#eeeeee")
    axis.set_xlabel(f"microseconds; point p50, line to p99\n{results.note}", fontsize=8)
    axis.set_title("A batch of 256 small transitions, idle server, beside unary calls", loc="left")
    return figure


def growth(read: Callable[[str], Results]) -> Any:
    results = read("table_size")
    figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
    for selector, colour in zip(results.cases, ("#0072B2", "#D55E00")):
        case = results.cases[selector]
        found = [results.summary(selector, side) for side in case["rounds"]]
        medians = [summary.median for summary in found]
        errors = [
            [summary.median - summary.low for summary in found],
            [summary.high - summary.median for summary in found],
        ]
        axis.errorbar(case["sizes"], medians, errors, marker="o", color=colour, label=selector)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel(f"items in the table\n{results.note}", fontsize=8)
    axis.set_ylabel("microseconds a batch of 256")
    axis.set_title("Time to draw a batch, by size of the table", loc="left")
    axis.legend(fontsize=8, frameon=False)
    return figure


PICTURES = {
    "bench_sample": sampling,
    "bench_write": writing,
    "bench_latency": latency,
    "bench_table_size": growth,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="of the last quick run")
    parser.add_argument("--out", type=pathlib.Path, help="folder of the pictures")
    arguments = parser.parse_args()
    results = _ROOT / "build/bench" if arguments.quick else _HERE.parent / "results"
    out = arguments.out or (results if arguments.quick else _ROOT / "docs/images")
    out.mkdir(parents=True, exist_ok=True)
    # The same results give the same file.
    matplotlib.rcParams |= {"svg.hashsalt": "gear_reverb", "axes.spines.top": False}
    matplotlib.rcParams |= {"axes.spines.right": False, "font.size": 9, "axes.axisbelow": True}
    for name, draw in PICTURES.items():
        try:
            figure = draw(lambda name: Results(results / f"{name}.json"))
        except FileNotFoundError as error:
            print(f"left out: {name}: there is no {error.filename}")
            continue
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)
        print(f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
