"""What a GPU must reach, and what it has reached in a run of gpu_check.py."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from gpu_workloads import WORKLOADS

# The checks that a figure means nothing without.
KERNELS = "kernels are like their twins"
SELECTION = "selection is like its twin"
BATCHES = ("batches are equal: torch", "draws are the twin's: torch, from the host")

LARGE, COPIED = (256, 512, 1024), ("W2", "W3", "W5")
SMALL_AND_LARGE = (("W1", 1024), ("W2", 1024), ("W3", 256))


@dataclasses.dataclass
class Bar:
    name: str
    required: float
    checks: Sequence[str]
    measured: float
    others: dict[str, float] = dataclasses.field(default_factory=dict)  # Beside it, to be known.

    def result(self, values: dict[str, Any]) -> dict[str, Any]:
        why = why_it_does_not_count(self.checks, values)
        met = self.measured >= self.required and not why
        known = not math.isnan(self.measured)
        verdict = "met" if met else "NOT MET" if known else "unmeasured"
        others = "".join(f", {name}: {value:.2f}" for name, value in self.others.items())
        because = f" ({why})" if why else ""
        required = f"(>= {self.required}{others})"
        print(f"   {verdict}: {self.name}: {self.measured:.2f} {required}{because}")
        figures = {"measured": self.measured} | self.others
        # JSON has no NaN.
        numbers = {k: None if math.isnan(value) else value for k, value in figures.items()}
        return {"name": self.name, "required": self.required, "met": met, "why": why} | numbers


def why_it_does_not_count(checks: Sequence[str], values: dict[str, Any]) -> str:
    for check in checks:
        if check in values["failed"]:
            return f"failed: {check}"
        if check not in values:
            return f"not run: {check}"
    return ""


def chosen(values: dict[str, Any], place: str, name: str) -> str:
    """The way that the library itself takes for a workload; "" if that is not known."""
    in_use = values.get("the device", {}).get("in_use") or [{}]
    for entry in in_use[0].get("choices" if place == "host" else "device_choices", []):
        if WORKLOADS[name].mean_piece_bytes < entry["piece_bytes_below"]:
            return entry["way"]
    return ""


def least(numbers: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, numbers)) else min(numbers, default=math.nan)


def highest(rows: Sequence[dict[str, Any]], figure: str, **wanted: Any) -> float:
    """Of the rows that have what is wanted; NaN where there is none."""
    found = [row[figure] for row in rows if all(row.get(k) == v for k, v in wanted.items())]
    return max(found, default=math.nan)


def bars(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Each with "measured" and what else there is, None where that is not known."""
    return [bar.result(values) for bar in of_gathers(values) + of_selection(values)]


def of_gathers(values: dict[str, Any]) -> list[Bar]:
    def gathered(place: str, name: str, batch: int, way: dict[str, str]) -> float:
        rows = values.get(f"gather from {place}", [])
        return highest(rows, "of_copy", workload=name, batch=batch, **way)

    def best(place: str, name: str, batch: int) -> float:
        return gathered(place, name, batch, {})

    def as_chosen(place: str, name: str, batch: int) -> float:
        return gathered(place, name, batch, {"way": chosen(values, place, name)})

    def bar(name: str, required: float, of: Callable[[Callable[..., float]], float]) -> Bar:
        others = {"as the library chose": of(as_chosen)}
        return Bar(name, required, (KERNELS,), of(best), others)

    def from_all(place: str) -> Callable[[Callable[..., float]], float]:
        return lambda rate: least([rate(place, n, b) for n in COPIED for b in LARGE])

    def of_small(rate: Callable[..., float]) -> float:
        return least([rate("host", n, 32) / rate("host", n, 1024) for n in ("W1", "W2", "W3")])

    return [
        bar("gather from host, of the copy", 0.9, from_all("host")),
        bar("batch 32 against 1024, from host", 0.8, of_small),
        of_whole_batches(values),
        bar("gather from HBM, of the copy", 0.8, from_all("device")),
        against_index_select(values, "host", "index_select from host", 2),
        against_index_select(values, "device", "index_select in HBM", 1.2),
    ]


def of_whole_batches(values: dict[str, Any]) -> Bar:
    def whole(name: str, batch: int) -> float:
        rows = values.get("whole batches", [])
        return highest(rows, "bytes_per_second", workload=name, batch=batch)

    name = "whole batches of 32 against 1024 (of W3 against 256)"
    measured = least([whole(n, 32) / whole(n, b) for n, b in SMALL_AND_LARGE])
    return Bar(name, 0.8, (KERNELS, *BATCHES), measured)


def against_index_select(values: dict[str, Any], place: str, title: str, required: float) -> Bar:
    """Beside it: by the ways that the library chose, and whole batches against whole steps."""
    rows = {r["workload"]: r for r in values.get("index_select", []) if r["place"] == place}
    steps = ("whole batches",) if place == "host" else ("tier", "tier, drawn by the device")
    wholes = [row for step in steps for row in values.get(step, [])]
    ratios, as_chosen, of_steps = [], [], []
    for name in COPIED:
        row = rows.get(name, {})
        ratios.append(row.get("ratio", math.nan))
        ours = row.get("ours", {}).get(chosen(values, place, name), math.nan)
        as_chosen.append(ours / row.get("theirs", math.nan))
        whole = highest(wholes, "bytes_per_second", workload=name, batch=256)
        of_steps.append(whole / row.get("whole_step_of_theirs", math.nan))
    others = {"as the library chose": least(as_chosen), "whole steps": least(of_steps)}
    return Bar(title, required, (KERNELS,), least(ratios), others)


def of_selection(values: dict[str, Any]) -> list[Bar]:
    selection = {result["items"]: result for result in values.get("selection", [])}
    fewest, most = (selection.get(items, {}) for items in (10**5, 10**8))
    draw = most.get(f"draw {1 << 20} ms", math.nan)
    updates = [items.get("update 4096 ms", math.nan) for items in (fewest, most)]
    return [
        Bar("draws of 2^20 per ms", 1, (SELECTION,), 1 / draw),
        Bar(
            "update: 2 x the time at 10^5 items by that at 10^8",
            1,
            (SELECTION,),
            2 * updates[0] / updates[1],
        ),
    ]
