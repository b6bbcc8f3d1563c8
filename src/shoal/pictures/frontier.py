"""The picture of a frontier: error against privacy loss, one line a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shoal.cells.frontier.errors import GUESS
from shoal.cells.frontier.frontier import JOINT_BOUND, LOWER_BOUND
from shoal.cells.frontier.text import over

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from shoal.cells.frontier.errors import Figures, Point
    from shoal.cells.frontier.frontier import Frontier
    from shoal.cells.plan import Plan

    End: TypeAlias = tuple[str, str, float]

# Told apart by people who see no red or no green (Okabe and Ito), and by their markers.
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d3a9b", "#7a5c3e",
)  # fmt: skip
_MARKERS = "os^DvPX<"
_DARK, _PALE = "#333333", "#eeeeee"
_PANEL, _HEIGHT = 5.6, 4.4
# The axis goes on to this many times the error of guessing.
_CAPACITY = 4
# Up to this span the error axis has marks at 2 and 5.
_FINE = 1e5
# Labels are this part of the height of a panel apart.
_APART = 0.052


def draw(frontier: Frontier[Plan]) -> Figure:
    """Two panels with logarithmic axes: the worst and the median cell.

    Grey above 1/2, where guessing does as well; the lower bound is dashed, and nothing lies
    below it. Methods without a certificate are dotted: they show noise over the range that they
    select in private.

    Args:
        frontier: What to draw.
    """
    from matplotlib.figure import Figure

    plan = frontier.points[0].plan
    names = ", ".join(each.name for each in plan.statistics)
    figure = Figure(figsize=(2 * _PANEL, _HEIGHT), layout="constrained")
    figure.suptitle(
        f"What a privacy loss buys: {names} of {len(plan.released)} cells, errors certified for "
        "every data set",
        x=0.01, ha="left", fontsize=11,
    )  # fmt: skip
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    worst = _panel(left, frontier, lambda figures: figures.worst)
    median = _panel(right, frontier, lambda figures: figures.median)
    worst += _joint(left, frontier)
    # Both panels share their axes: names are placed when both are drawn.
    for axis, title, ends in ((left, "the worst cell", worst), (right, "the median cell", median)):
        _dress(axis, frontier, title)
        _name(axis, ends)
    left.set_ylabel(f"worst-case error over {over(frontier).partition(' (')[0]}")
    return figure


def _panel(axis: Axes, frontier: Frontier[Plan], pick: Callable[[Figures], float]) -> list[End]:
    """Draw the lines; name, colour and last error of each."""
    ends: list[End] = []
    for at, method in enumerate(frontier.methods):
        colour = _COLOURS[at % len(_COLOURS)]
        marker = _MARKERS[(at + at // len(_COLOURS)) % len(_MARKERS)]
        points = frontier.of(method)
        error = [pick(_shown(each)) for each in points]
        certified = points[0].plan.certified
        name = method if certified else f"{method}: only noise, not certified"
        # A plan that releases constants spends nothing, which has no place on the axis.
        spent = [each.plan.epsilon or float(each.epsilon) for each in points]
        axis.plot(
            spent, error, "-" if certified else ":",
            color=colour, marker=marker, markersize=5, linewidth=1.6, label=name,
        )  # fmt: skip
        ends.append((name, colour, error[-1]))
    bound = [pick(each.figures) for each in frontier.bounds]
    if bound:
        spent = [float(each.spent) for each in frontier.bounds]
        axis.plot(spent, bound, "--", color=_DARK, linewidth=1.4)
        ends.append((LOWER_BOUND, _DARK, bound[-1]))
    return ends


def _joint(axis: Axes, frontier: Frontier[Plan]) -> list[End]:
    """The bound on the worst of all cells, if an optimal plan proves it: over its own line."""
    found = frontier.joint_bounds
    if not found:
        return []
    axis.plot(
        [float(each.epsilon) for each in found], [each.worst for each in found], "--",
        color=_DARK, linewidth=1.4, zorder=3,
    )  # fmt: skip
    return [(JOINT_BOUND, _DARK, found[-1].worst)]


def _shown(point: Point[Plan]) -> Figures:
    return point.noise_figures or point.figures


def _dress(axis: Axes, frontier: Frontier[Plan], title: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis.set(xscale="log", yscale="log", xlabel="privacy loss epsilon, in total")
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axis.set_axisbelow(True)
    losses = [float(each) for each in frontier.epsilons]
    axis.set_xticks(losses, [f"{each:.3g}" for each in losses])
    axis.xaxis.set_minor_locator(NullLocator())
    low, high = axis.get_ylim()
    steps = (1.0, 2.0, 5.0) if high < _FINE * low else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps, numticks=30))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylim(low, max(high, _CAPACITY * GUESS))
    axis.axhspan(GUESS, axis.get_ylim()[1], color=_PALE, zorder=0)
    axis.axhline(GUESS, color=_DARK, linewidth=1)
    # Errors fall: the upper right corner is free of lines.
    axis.text(
        0.99, 0.97, "grey: no better than guessing\nthe middle (error 1/2)",
        transform=axis.transAxes, ha="right", va="top", fontsize=8, color=_DARK,
    )  # fmt: skip


def _name(axis: Axes, ends: list[End]) -> None:
    """Write each name to the right of its line's end, names apart from each other."""
    low, high = np.log(axis.get_ylim())
    wanted = np.array([(np.log(error) - low) / (high - low) for *_, error in ends])
    for (name, colour, error), place in zip(ends, _spread(wanted, _APART), strict=True):
        axis.annotate(
            name, (1.0, error), (1.07, place),
            xycoords=("axes fraction", "data"), textcoords="axes fraction",
            va="center", fontsize=8.5, color=colour, annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )  # fmt: skip


def _spread(wanted: NDArray[np.float64], apart: float) -> NDArray[np.float64]:
    """Places at least `apart` from each other, in the same order, close to the wanted ones.

    Least squares under an order is isotonic regression of the places less their steps.

    Example:
        >>> _spread(np.array([0.5, 0.5, 0.9]), 0.1).round(3).tolist()
        [0.45, 0.55, 0.9]
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    steps = apart * np.arange(len(wanted))
    found = np.empty(len(wanted))
    found[order] = isotonic_regression(wanted[order] - steps).x + steps
    return found
