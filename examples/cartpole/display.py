"""The terminal's picture of a run, by Rich; plain lines where there is no terminal."""

import io
import pathlib
import re
import statistics

from progress import RunProgress
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_WIDTH, _CHART_WIDTH, _CHART_HEIGHT = 96, 80, 7
_BLOCKS = " ▁▂▃▄▅▆▇█"


def _chart(returns: list[float], top: float = 500.0) -> Text:
    """Mean return over the run, oldest first: one column per equal share of the episodes."""
    columns = min(len(returns), _CHART_WIDTH)
    heights = []
    for column in range(columns):
        start = column * len(returns) // columns
        end = (column + 1) * len(returns) // columns
        mean = min(statistics.fmean(returns[start:end]), top)
        heights.append(mean / top * _CHART_HEIGHT)
    text = Text()
    for row in reversed(range(_CHART_HEIGHT)):
        label = {_CHART_HEIGHT - 1: f"{top:.0f}", 0: "0"}.get(row, "")
        text.append(f"{label:>4} ", style="dim")
        fills = (min(max(height - row, 0.0), 1.0) for height in heights)
        bars = "".join(_BLOCKS[round(fill * 8)] for fill in fills)
        text.append(f"{bars:<{_CHART_WIDTH}}\n", style="green" if row > 1 else "yellow")
    text.append(f"     mean return per episode, {len(returns)} episodes", style="dim")
    return text


def _tables(progress: RunProgress) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    grid.add_column("table")
    for heading in ("items", "inserts", "samples", "inserts/s", "samples/s", "samples/insert"):
        grid.add_column(heading, justify="right")
    for name, table in sorted(progress.tables.items()):
        newest, (inserts, samples) = table.newest, table.rates()
        ratio = ""
        if name == "replay":
            target = progress.config.samples_per_insert
            ratio = f"{progress.samples_per_insert():.2f} (target {target:g})"
        grid.add_row(
            f"[bold]{name}[/]",
            f"{newest.size:,} of {newest.max_size:,}",
            f"{newest.inserts:,}",
            f"{newest.samples:,}",
            f"{inserts:,.0f}",
            f"{samples:,.0f}",
            ratio,
        )
    return grid


def _workers(progress: RunProgress) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for heading in ("process", "episodes", "steps", "exploration", "last return"):
        grid.add_column(heading, justify="left" if heading == "process" else "right")
    for index, actor in enumerate(progress.actors):
        grid.add_row(
            f"[bold]actor {index}[/]",
            f"{actor.episodes:,}",
            f"{actor.steps:,}",
            f"{actor.epsilon:.0%}",
            f"{actor.last_return:.0f}",
        )
    return grid


def dashboard(progress: RunProgress) -> RenderableType:
    learner = Text.assemble(
        ("learner", "bold"),
        f"  {progress.updates:,} updates   |error| {progress.mean_error:.2f}",
        f"   value {progress.mean_value:.1f}",
    )
    recent = Text.assemble(
        f"mean return of the last {progress.config.window} episodes ",
        (f"{progress.recent_return():.0f}", "bold green"),
        justify="right",
    )
    status = Table.grid(expand=True)
    status.add_column()
    status.add_column(justify="right")
    status.add_row(learner, recent)
    return Panel(
        Group(_chart(progress.returns), _tables(progress), _workers(progress), status),
        title="[bold]CartPole-v1 over gear_reverb[/]",
        title_align="left",
        subtitle=f"{progress.seconds:.0f} s",
        subtitle_align="right",
        border_style="cyan",
        width=_WIDTH,
    )


def line(progress: RunProgress) -> str:
    """The same in one line, for logs."""
    replay = progress.tables["replay"]
    inserts, samples = replay.rates()
    return (
        f"[{progress.seconds:5.1f} s] {len(progress.returns)} episodes, {progress.steps} steps, "
        f"recent return {progress.recent_return():.1f} | {replay.newest.size} items, "
        f"{inserts:.0f} inserts/s, {samples:.0f} samples/s, "
        f"{progress.samples_per_insert():.2f} samples/insert "
        f"(target {progress.config.samples_per_insert:g}) | {progress.updates} updates"
    )


def summary(progress: RunProgress, reason: str) -> Text:
    verdict = progress.verdict()
    mark, style = ("PASS", "bold green") if verdict.passed else ("FAIL", "bold red")
    window = progress.config.window
    return Text.assemble(
        (mark, style),
        f"  {reason} after {progress.seconds:.1f} s and {progress.steps:,} steps: mean return of "
        f"{window} episodes rose from {verdict.first:.1f} to {verdict.last:.1f} "
        f"(required: {verdict.required:.0f})",
    )


def save_picture(progress: RunProgress, reason: str, path: str) -> None:
    """The last picture and the summary as SVG, with no font from the network."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(dashboard(progress))
    console.print(summary(progress, reason))
    picture = console.export_svg(title="python examples/cartpole/main.py")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    pathlib.Path(path).write_text(picture, encoding="utf-8")
