"""Pictures of cells: counts, plans, comparisons, frontiers, and released values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.cells.frontier.errors import GUESS
from shoal.cells.frontier.frontier import JOINT_BOUND, LOWER_BOUND
from shoal.cells.frontier.text import over
from shoal.cells.statistics.mean import Mean
from shoal.cells.typical_error import CELLS, SPREAD, typical_errors
from shoal.pictures import shapes
from shoal.pictures.shapes import DARK, GREY, MOST_NAMED, ORANGE, PALE
from shoal.privacy.budget import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from shoal.cells.frontier.frontier import Frontier
    from shoal.cells.plan import Plan
    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.release import Release
    from shoal.cells.simulation.compare import Comparison
    from shoal.data.occupancy import Counts

# The axis of errors goes on to this many times the error of guessing.
_CAPACITY = 4
# More cells than that have no room for their names under a plan.
_NAMED = 40
# Bytes before the corners of a polygon: byte order, kind, number of rings, number of points.
_HEAD, _CIRCLE = 13, 360.0


def draw_release(release: Release, confidence: float) -> Figure:
    """Each cell's value with its interval, a panel a statistic; hexagons as a map.

    Few cells come in their own order with their names, many from the smallest value to the largest.
    """
    table = release.table(confidence)
    statistics = table["statistic"].unique().to_pylist()
    labels = release.plan.occupancy.labels
    number, places = len(statistics), _hexagons(release)
    named = places is None and len(labels) <= MOST_NAMED
    released = len(release.plan.released)
    left = f", {len(labels) - released:,} left out" if released < len(labels) else ""
    kind = "simulated, not private: " if release.simulated else ""
    title = f"{kind}{released:,} cells{left}, epsilon {show(release.plan.exact_epsilon)}"
    if named:
        size, shape = (7.5 * number, 1.8 + 0.19 * len(labels)), (1, number)
    else:
        size, shape = (9.0, (6.0 if places else 3.8) * number), (number, 1)
    figure, axes = shapes.new(title, size, shape, sharey=named)
    for axis, statistic in zip(axes, statistics, strict=True):
        rows = table.filter(pc.equal(table["statistic"], pa.scalar(str(statistic))))
        value, low, high = (
            rows[each].to_numpy().astype(float) for each in ("value", "low", "high")
        )
        pooled = np.array([each == "pooled" for each in rows["source"].to_pylist()])
        text = f"{statistic} ({100 * confidence:.4g}%)"
        if places is not None:
            own = np.where(pooled, np.nan, value)
            _draw_map(axis, places, own, high - low, str(statistic))
        elif named:
            shapes.intervals(axis, labels, value, (low, high), pooled)
            axis.set_xlabel(text)
        else:
            own = ~pooled & ~np.isnan(value)
            shapes.ranked(axis, value[own], ends=(low[own], high[own]))
            axis.set(xlabel="released cells, smallest value first", ylabel=text)
    if places is not None or (named and released < len(labels)):
        shapes.legend(figure, axes[0])
    return figure


def _hexagons(release: Release) -> list[str] | None:
    """The hexagons that all cells are, if they are nothing else."""
    cells = release.plan.occupancy.cells
    rules = release.manifest["records"]["cell"]
    if len(rules) == 1 and rules[0].startswith("hexagon("):
        return list(map(str, cells.column(0).to_pylist()))
    return None


def _draw_map(
    axis: Axes,
    hexagons: Sequence[str],
    value: NDArray[np.float64],
    width: NDArray[np.float64],
    label: str,
) -> None:
    """Fill each hexagon by its value; grey where it has none, hatched where its interval is wide.

    Wide is an interval that spans more than half of what all values span.
    """
    from matplotlib.collections import PolyCollection

    corners, known = hexagon_outlines(hexagons), ~np.isnan(value)
    wide = known & (width > (np.ptp(value[known]) / 2 if known.any() else 0))
    groups = {name: [corners[at] for at in np.flatnonzero(rows)] for name, rows in
              (("empty", ~known), ("filled", known), ("hatched", wide))}  # fmt: skip
    filled = PolyCollection(groups["filled"], ec="white", lw=0.3, array=value[known])
    axis.add_collection(filled)
    empty: dict[str, Any] = {"fc": PALE, "ec": GREY, "lw": 0.5, "label": "left out"}
    wide_label = "interval wider than half of what all values span"
    hatched: dict[str, Any] = {"fc": "none", "ec": DARK, "lw": 0, "hatch": "////"}
    for name, look in (("empty", empty), ("hatched", {**hatched, "label": wide_label})):
        if groups[name]:
            axis.add_collection(PolyCollection(groups[name], **look))
    axis.autoscale_view()
    middle = np.radians(np.mean([shape[:, 1].mean() for shape in corners]))
    axis.set(xlabel="longitude", ylabel="latitude", aspect=1 / max(np.cos(middle), 0.05))
    axis.get_figure().colorbar(filled, ax=axis, label=label, shrink=0.8)  # type: ignore[union-attr]


def hexagon_outlines(hexagons: Sequence[str]) -> list[NDArray[np.float64]]:
    """Corners of H3 cells as longitudes and latitudes in degrees, on one side of the date line."""
    from h3ronpy.vector import cells_to_wkb_polygons

    shapes = []
    indices = pa.array([int(each, 16) for each in hexagons], pa.uint64())
    polygons: Any = cells_to_wkb_polygons(indices)
    for polygon in pa.array(polygons).to_pylist():
        corners = np.frombuffer(polygon[_HEAD:], "<f8").reshape(-1, 2).copy()
        if np.ptp(corners[:, 0]) > _CIRCLE / 2:
            corners[corners[:, 0] < 0, 0] += _CIRCLE
        shapes.append(corners)
    return shapes


def draw_occupancy(occupancy: Counts) -> Figure:
    """How many records users have in a cell, cells a user has, and users a cell has."""
    facts = occupancy.summary()
    title = f"{facts.users:,} users, {facts.cells:,} cells, {facts.records:,} records"
    figure, axes = shapes.new(title, (13.8, 3.6), (1, 3))
    for axis, values, rank, label in zip(
        axes,
        (occupancy.count, occupancy.cells_per_user, occupancy.users_per_cell),
        ("users in cells, fewest first", "users, fewest first", "cells, fewest first"),
        ("records of a user in a cell", "cells of a user", "users of a cell"),
        strict=True,
    ):
        shapes.ranked(axis, values)
        axis.set(xlabel=rank, ylabel=label)
        shapes.logarithmic(axis, "y")
    return figure


def draw_plan(plan: PlanFacts) -> Figure:
    """Errors of released cells, best first: certified ones, or those to expect."""
    errors, guess, rival = plan.relative_error, np.full(len(plan.relative_error), 0.5), "guessing"
    what, unit = "mean noise", "over the selected range"
    if plan.certified:
        errors, guess = plan.worst_case_error, plan.statistic_range / 2
        what, unit = "worst-case error", "in its unit"
    elif plan.statistics == (Mean(),):
        deviation = plan.width * SPREAD
        errors, rival = typical_errors(plan) * deviation, "one number for all cells"
        guess = np.full(len(errors), deviation * math.sqrt(2 * CELLS / math.pi))
        what, unit = "typical error", f"if values have a standard deviation of {deviation:.3g}"
    number, cells = len(plan.statistics), len(plan.released)
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: {what} of each cell"
    figure, axes = shapes.new(title, (7 * number, 4), (1, number))
    for at, axis in enumerate(axes):
        rows = slice(at * cells, (at + 1) * cells)
        order, place = shapes.ranked(axis, errors[rows], "this plan"), np.arange(1, cells + 1)
        if plan.certified and not plan.gaussian:
            label = "no plan does better in this cell"
            axis.plot(place, plan.lower_bound[rows][order], "_", color=GREY, label=label)
        axis.axhline(guess[rows][0], color=ORANGE, label=rival)
        if cells <= _NAMED:
            names = [plan.occupancy.labels[each] for each in plan.released[order].tolist()]
            axis.set_xticks(place, map(shapes.plain_name, names), rotation=60, ha="right")
        axis.set(
            xlabel="cells, best first", ylabel=f"{what} of the {plan.statistics[at].name}\n{unit}"
        )
        shapes.logarithmic(axis, "y")
    shapes.legend(figure, axes[0])
    return figure


def draw_comparison(found: Comparison) -> Figure:
    """The typical error of every method, up to its certified one where it has one."""
    rows = sorted(found.table().to_pylist(), key=lambda row: -row["typical_error"])
    title = f"error of every method at epsilon {rows[0]['epsilon']:g}"
    figure, (axis,) = shapes.new(title, (7.5, 0.5 * len(rows) + 1.6))
    names = [row["method"].replace("_", " ") for row in rows]
    typical = np.array([row["typical_error"] for row in rows])
    worst = [row["worst_case_error"] if row["certified"] else None for row in rows]
    certified = np.array([np.nan if each is None else each for each in worst])
    shapes.intervals(axis, names, typical, (typical, np.fmax(typical, certified)))
    axis.lines[0].set_label("typical")
    axis.plot(certified, np.arange(len(rows)), "D", color=ORANGE, label="worst case, certified")
    axis.set_xlabel("absolute error in the value's unit")
    shapes.logarithmic(axis, "x")
    shapes.legend(figure, axis)
    return figure


def draw_frontier(frontier: Frontier[Plan]) -> Figure:
    """Error against privacy loss, a curve a method: the worst cell and the median cell.

    Grey where guessing does as well; nothing lies below the dashed bound. A method without a
    certificate is dotted: its noise over the range that it selects.
    """
    names = ", ".join(each.name for each in frontier.points[0].plan.statistics)
    title = f"What a privacy loss buys: {names} of {len(frontier.points[0].plan.released)} cells"
    figure, axes = shapes.new(title, (11.2, 5.2), (1, 2), sharex=True, sharey=True)
    for axis, which in zip(axes, ("worst", "median"), strict=True):
        for at, method in enumerate(frontier.methods):
            points = frontier.of(method)
            certified = points[0].plan.certified
            # A plan that releases constants spends nothing, which has no place on the axis.
            spent = [each.plan.epsilon or float(each.epsilon) for each in points]
            error = [getattr(each.noise_figures or each.figures, which) for each in points]
            name = method if certified else f"{method}: only noise, not certified"
            shapes.curve(axis, spent, error, name, at, "-" if certified else ":")
        for label, colour, bound in (
            (LOWER_BOUND, DARK, [(each.spent, each.figures) for each in frontier.bounds]),
            (JOINT_BOUND, GREY, [(each.epsilon, each) for each in frontier.joint_bounds]),
        ):
            if bound and (which == "worst" or colour == DARK):
                error = [getattr(each, which) for _, each in bound]
                spent = [float(loss) for loss, _ in bound]
                axis.plot(spent, error, "--", color=colour, linewidth=1.4, label=label)
        axis.set_title(f"the {which} cell", fontsize=10, loc="left")
        axis.set_xlabel("privacy loss epsilon, in total")
        shapes.logarithmic(axis, "x")
    shapes.logarithmic(axes[0], "y")
    top = max(axes[0].get_ylim()[1], _CAPACITY * GUESS)
    axes[0].set_ylim(axes[0].get_ylim()[0], top)
    for axis in axes:
        axis.axhspan(GUESS, top, color=PALE, zorder=0)
        axis.axhline(GUESS, color=DARK, linewidth=1, label="guessing the middle: error 1/2")
    axes[0].set_ylabel(f"worst-case error over {over(frontier).partition(' (')[0]}")
    shapes.legend(figure, axes[0], columns=3)
    return figure
