"""One look a line in all pictures of unbiased means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal_studies.drawing import Shown, plain_numbers
from shoal_studies.paper_004_estimators import CLIPPED, COMBINED, SAMPLED, SYMMETRIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "bound": "#333333",
    CLIPPED: "#1f6f8b",
    SAMPLED: "#8d99ae",
    COMBINED: "#d1495b",
    SYMMETRIC: "#2a9d8f",
}
SHADES = ("#12455a", "#1f6f8b", "#5fa8c4", "#a9d3e2")


def line(
    axis: Axes,
    shown: Shown,
    name: str,
    across: Sequence[float],
    along: Sequence[float],
    *,
    colour: str,
    style: str = "-",
) -> None:
    """A line, remembered by its name for the legend."""
    [shown[name]] = axis.plot(across, along, style, color=colour, linewidth=1.5)


def marks(
    axis: Axes,
    shown: Shown,
    name: str,
    across: Sequence[float],
    along: Sequence[float],
    error: Sequence[float],
    *,
    colour: str,
) -> None:
    """Simulated figures with bars of two standard errors."""
    bars = [2 * each for each in error]
    axis.errorbar(across, along, bars, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2)
    [shown[name]] = axis.plot(across, along, "o", color=colour, markersize=3.5)


def finish(axis: Axes, title: str, across: str, along: str) -> None:
    """Logarithmic axes with plain words."""
    axis.set(xscale="log", yscale="log", xlabel=across, ylabel=along)
    axis.set_title(title, fontsize=10)
    plain_numbers(axis.yaxis)
