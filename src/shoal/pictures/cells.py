"""Pictures of released cells: each value with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.pictures.names import drawn
from shoal.privacy.budget import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from shoal.cells.release import Release

_BLUE, _GREY = "#1f6f8b", "#8d99ae"
# More cells than that have no room for their names.
_MOST_NAMED = 80
_LONGEST = 40


def draw_release(release: Release, confidence: float) -> Figure:
    """Each cell's value with its interval, a panel a statistic.

    Up to 80 cells come in their own order with their names, and pooled values of those that are
    left out are grey and hollow. Of more, the released ones come from the smallest value to the
    largest.

    Args:
        release: As delivered.
        confidence: Of every interval on its own.
    """
    from matplotlib.figure import Figure

    table = release.table(confidence)
    statistics = table["statistic"].unique().to_pylist()
    labels = release.plan.occupancy.labels
    named = len(labels) <= _MOST_NAMED
    across, down = (len(statistics), 1) if named else (1, len(statistics))
    size = (7.5, 1.8 + 0.19 * len(labels)) if named else (9.0, 3.8)
    figure = Figure(figsize=(size[0] * across, size[1] * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=named).ravel()
    for axis, statistic in zip(panels, statistics, strict=True):
        rows = table.filter(pc.equal(table["statistic"], pa.scalar(str(statistic))))
        told = f"{statistic} ({100 * confidence:.4g}%)"
        _by_name(axis, rows, labels, told) if named else _by_rank(axis, rows, told)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
    released = len(release.plan.released)
    left = f", {len(labels) - released:,} left out" if released < len(labels) else ""
    kind = "simulated, not private: " if release.simulated else ""
    figure.suptitle(
        f"{kind}{released:,} cells{left}, epsilon {show(release.plan.exact_epsilon)}",
        x=0.01, ha="left", fontsize=11,
    )  # fmt: skip
    if named and released < len(labels):
        known = panels[0].get_legend_handles_labels()
        figure.legend(*known, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _by_name(axis: Axes, rows: pa.Table, labels: tuple[str, ...], told: str) -> None:
    """A row a cell, downwards in the cells' order."""
    place = np.arange(len(labels))
    value, low, high, pooled = _numbers(rows)
    for those, colour, face, label in _kinds(pooled):
        axis.hlines(place[those], low[those], high[those], color=colour, linewidth=1.6)
        axis.plot(
            value[those],
            place[those],
            "o",
            color=colour,
            markersize=5,
            label=label,
            markerfacecolor=face,
        )
    axis.set_yticks(place, [drawn(each, _LONGEST) for each in labels], fontsize=8)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.grid(visible=True, axis="x", color="#e5e5e5", linewidth=0.6)
    axis.set_xlabel(told)


def _by_rank(axis: Axes, rows: pa.Table, told: str) -> None:
    """A column a released cell, from the smallest value to the largest."""
    value, low, high, pooled = _numbers(rows)
    shown = np.flatnonzero(~pooled & ~np.isnan(value))
    order = shown[np.argsort(value[shown], kind="stable")]
    place = np.arange(1, len(order) + 1)
    axis.vlines(place, low[order], high[order], color=_BLUE, linewidth=0.8, alpha=0.5)
    axis.plot(place, value[order], "o", color=_BLUE, markersize=2.5, label="released")
    axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axis.set(xlabel="released cells, smallest value first", ylabel=told)


def _numbers(rows: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values and ends of intervals, NaN where there is none, and which values are pooled."""
    value, low, high = (
        rows[name].to_numpy().astype(np.float64) for name in ("value", "low", "high")
    )
    source = rows["source"].to_pylist()
    return value, low, high, np.array([each == "pooled" for each in source])


def _kinds(
    pooled: np.ndarray,
) -> list[tuple[np.ndarray, str, str, str]]:
    """Positions, colours of lines and of markers, and names of released and of pooled values."""
    kinds = [(np.flatnonzero(~pooled), _BLUE, _BLUE, "released")]
    if pooled.any():
        kinds.append((np.flatnonzero(pooled), _GREY, "white", "left out: pooled from other cells"))
    return kinds
