"""Draws the shapes of all pictures: intervals by name, curves, and ranked dots."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from shoal.arrays import Bools, Floats, Ints
from shoal.errors import printable

BLUE, ORANGE, GREY, DARK, PALE = "#1f6f8b", "#d1495b", "#8d99ae", "#333333", "#eeeeee"
# People who see no red or no green can tell these colours apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d3a9b", "#7a5c3e")
MARKERS = "os^DvPX<"
# A picture of more rows has no room for their names.
MOST_NAMED = 80
# The largest number of dots that a picture has room for side by side.
_MOST_DOTS = 2000
# Up to this span a logarithmic axis has ticks at 2 and 5.
_FINE = 1e3


def new(
    title: str, size: tuple[float, float], shape: tuple[int, int] = (1, 1), **options: Any
) -> tuple[Figure, list[Axes]]:
    """Returns a figure of a size in inches with its panels, in rows and columns."""
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    axes = figure.subplots(*shape, squeeze=False, **options).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def intervals(
    axis: Axes,
    names: Sequence[str],
    value: Floats,
    ends: tuple[Floats, Floats],
    hollow: Bools | None = None,
) -> None:
    """Draws a row for each name, with a value and an interval, downwards; grey if not reliable.

    Intervals without an end have an arrow at the edge.
    """
    place = np.arange(len(names))
    edges = _edges(value, ends)
    low, high = (np.clip(each, *edges) for each in ends)
    for end, edge, mark in zip(ends, edges, "<>", strict=True):
        endless = place[np.isinf(end)]
        if len(endless):
            axis.plot(np.full(len(endless), edge), endless, mark, color=GREY, markersize=6)
    for rows, look in looks(hollow, len(names), "reliable"):
        axis.hlines(place[rows], low[rows], high[rows], color=look["color"], lw=1.6)
        axis.plot(value[rows], place[rows], "o", markersize=5, **look)
    if len(names) <= MOST_NAMED:
        axis.set_yticks(place, [plain_name(each, 40) for each in names], fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")


def _edges(value: Floats, ends: tuple[Floats, Floats]) -> tuple[float, float]:
    """Returns where intervals without an end are cut: a tenth beyond all that is finite."""
    every = np.concatenate([value, *ends])
    finite = every[np.isfinite(every)]
    low = float(finite.min(initial=0.0))
    high = float(finite.max(initial=0.0))
    pad = (high - low) / 10 or 1.0
    return low - pad, high + pad


def rows(
    title: str, names: Sequence[str], value: Floats, ends: tuple[Floats, Floats], label: str
) -> tuple[Figure, Axes]:
    """Returns a figure of intervals in one panel."""
    figure, (axis,) = new(title, (8.5, 1.6 + 0.24 * min(len(names), MOST_NAMED)))
    intervals(axis, names, value, ends)
    axis.set_xlabel(label)
    return figure, axis


def pairs(
    title: str, names: Sequence[str], label: str, columns: Mapping[str, Sequence[float | None]]
) -> Figure:
    """Returns a figure with two positive numbers in each row; the second may be missing."""
    first, second = (np.array(column, float) for column in columns.values())
    ends = np.fmin(first, second), np.fmax(first, second)
    figure, axis = rows(title, names, first, ends, label)
    first_label, second_label = columns
    axis.lines[0].set_label(first_label)
    axis.plot(second, np.arange(len(names)), "D", color=ORANGE, label=second_label)
    logarithmic(axis, "x")
    legend(figure, axis)
    return figure


def ranked(
    axis: Axes,
    value: NDArray[Any],
    label: str = "",
    ends: tuple[Floats, Floats] | None = None,
    hollow: Bools | None = None,
) -> Ints:
    """Draws a dot for each value, from the smallest to the largest, and returns their order.

    If a picture has no room for all dots, it has the two ends and some at equal distances between.
    """
    order = np.argsort(value, kind="stable")
    dots = min(len(order), _MOST_DOTS)
    # The ranks of values that are drawn, from 0.
    drawn = np.unique(np.linspace(0, len(order) - 1, dots).astype(np.int64))
    grey = None if hollow is None else hollow[order[drawn]]
    for rows, look in looks(grey, len(drawn), label):
        place = drawn[rows] + 1
        at = order[drawn[rows]]
        if ends is not None:
            low, high = ends
            axis.vlines(place, low[at], high[at], color=look["color"], lw=0.8, alpha=0.5)
        axis.plot(place, value[at], "o", markersize=2.5, **look)
    return order


def looks(hollow: Bools | None, size: int, label: str) -> Iterator[tuple[Bools, dict[str, Any]]]:
    """Yields the rows that are reliable, then those that are not, with colour and label."""
    grey = np.zeros(size, bool) if hollow is None else hollow
    for rows, colour, name in ((~grey, BLUE, label), (grey, GREY, "not reliable")):
        if rows.any():
            yield rows, {"color": colour, "label": name}


def both_ends(names: Sequence[str]) -> str:
    """Returns the first three and the last three names."""
    short = [plain_name(each, 20) for each in names]
    if len(short) > 6:
        short = [*short[:3], "…", *short[-3:]]
    return ", ".join(short)


def curve(
    axis: Axes, x: Sequence[float], y: Sequence[float], label: str, at: int, style: str = "-"
) -> None:
    """Draws a line with markers; `at` decides its colour and marker, and later ones are thinner."""
    # When all colours were used, they come again with other markers.
    marker = MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]
    look: dict[str, Any] = {"color": COLOURS[at % len(COLOURS)], "marker": marker, "markersize": 5}
    axis.plot(x, y, style, label=label, linewidth=1.2 + 3 * 0.7**at, **look)


def logarithmic(axis: Axes, which: str) -> None:
    """Makes an axis, `x` or `y`, logarithmic, with ordinary numbers as ticks."""
    axis.set(**{f"{which}scale": "log"})
    ticks = axis.xaxis if which == "x" else axis.yaxis
    low, high = ticks.get_view_interval()
    is_short = high < _FINE * low
    ticks.set_major_locator(LogLocator(subs=(1, 2, 5) if is_short else (1,), numticks=30))
    ticks.set_major_formatter("{x:g}")
    ticks.set_minor_formatter("")


def legend(figure: Figure, axis: Axes, columns: int = 2) -> None:
    """Adds a legend of one panel below all panels."""
    look: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9}
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", **look)


def plain_name(name: str, most: int = 60) -> str:
    r"""Returns a name as Matplotlib's text: cut, printable, and never read as a formula."""
    return printable(name)[:most].replace("$", r"\$")
