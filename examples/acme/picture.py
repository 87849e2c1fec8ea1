"""Draws learning curves of both libraries together, one panel an agent."""

import pathlib
from collections.abc import Mapping, Sequence

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

_COLOURS = {"dm-reverb": "#D55E00", "gear_reverb": "#0072B2"}
_POINTS = 60

Curve = Sequence[tuple[int, float]]


def draw(path: pathlib.Path, cases: Mapping[str, Mapping[str, Sequence[Curve]]]) -> None:
    """Draws, of every agent and library, each training thinly and their mean boldly.

    Args:
      path: The SVG file to write.
      cases: For each agent, for each library, curves of (environment steps, return of an episode).
    """
    # The same curves give the same file.
    matplotlib.rcParams |= {"svg.hashsalt": "gear_reverb", "axes.spines.top": False}
    matplotlib.rcParams |= {"axes.spines.right": False, "font.size": 9}
    figure, axes = plt.subplots(
        1, len(cases), figsize=(3.4 * len(cases), 3), layout="constrained", squeeze=False
    )
    for axis, (agent, sides) in zip(axes[0], cases.items()):
        last = min(curve[-1][0] for curves in sides.values() for curve in curves)
        steps = np.linspace(0, last, _POINTS + 1)[1:]
        for side, curves in sides.items():
            smooth = [_smooth(curve, steps, last / 10) for curve in curves]
            for values in smooth:
                axis.plot(steps, values, color=_COLOURS[side], linewidth=0.6, alpha=0.5)
            mean = np.mean(smooth, axis=0)
            axis.plot(steps, mean, color=_COLOURS[side], linewidth=2, label=side)
        axis.set_title(agent, loc="left", fontsize=9)
        axis.set_xlabel("environment steps")
        axis.grid(color="#eeeeee")
    axes[0][0].set_ylabel("return of an episode")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _smooth(curve: Curve, steps: np.ndarray, width: float) -> np.ndarray:
    """The mean return of the episodes that ended within `width` before each step.

    Where none did, that of the last one before; of the first one at the start.
    """
    ends, returns = np.array(curve).T
    means = []
    for step in steps:
        last = max(int(np.searchsorted(ends, step, side="right")), 1)
        first = min(int(np.searchsorted(ends, step - width, side="right")), last - 1)
        means.append(returns[first:last].mean())
    return np.array(means)
