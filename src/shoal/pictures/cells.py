"""Draws pictures of cells: counts, plans, comparisons, frontiers, and released values."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PolyCollection
from matplotlib.figure import Figure

from shoal.arrays import Bools, Floats
from shoal.cells.comparisons.comparison import JOINT_BOUND, LOWER_BOUND, Comparison, over
from shoal.cells.estimates.typical_error import CELLS, SD, typical_errors
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR, Mean
from shoal.cells.plan import Release
from shoal.data import keys
from shoal.data.counts import Counts
from shoal.pictures import shapes
from shoal.pictures.shapes import DARK, GREY, MOST_NAMED, ORANGE, PALE
from shoal.presence import plan as presence
from shoal.privacy.budget import show

# A plan of more cells has no room for their names.
_NAMED = 40
# Statistics that are of no values, and how many one picture has.
_COUNTS = ("users", "records")
_MOST_PANELS = 6
# Bytes before the corners of a polygon: byte order, kind, number of rings, number of points.
_HEAD = 13
# Degrees of longitude around the earth.
_CIRCLE = 360.0
# The map goes beyond the extent of the reliable hexagons by this part of it.
_AROUND = 0.5
# The fewest degrees by which it does.
_CLOSE = 2.0


def draw_release(release: Release | presence.Release, confidence: float, label: str = "") -> Figure:
    """Draws each cell's value with its interval, in a panel for each statistic; hexagons as a map.

    Few cells come in their own order with their names, many from the smallest value to the largest.
    """
    table = release.table(confidence)
    labels = keys.labels(release.cells)
    statistics = table["statistic"].unique().to_pylist()[:_MOST_PANELS]
    places = _hexagons(release)
    named = places is None and len(labels) <= MOST_NAMED
    reliable_cells = table["status"].to_pylist()[: len(labels)].count("reliable")
    of_all = f" of {len(labels):,}" if reliable_cells < len(labels) else ""
    kind = "simulated, not private: " if release.simulated else ""
    of = shapes.plain_name(release.said.records.value or "records")
    cells = f"{reliable_cells:,}{of_all} cells reliable"
    title = f"{kind}{of}, {cells}, epsilon {show(release.epsilon)}"
    if isinstance(release, Release):
        title = "\n".join([title, *release.published.sentences])
    in_words = f", {shapes.plain_name(label)}," if label else ""
    height = 3.8
    if named:
        height = 1.8 + 0.19 * len(labels)
    elif places:
        height = 6.0
    figure, axes = shapes.new(title, (8.5, height * len(statistics)), (len(statistics), 1))
    for axis, statistic in zip(axes, map(str, statistics), strict=True):
        rows = table.filter(pc.equal(table["statistic"], pa.scalar(statistic)))
        value, low, high = (
            rows[name].to_numpy().astype(float) for name in ("value", "low", "high")
        )
        common = np.array([each == "common" for each in rows["source"].to_pylist()])
        measured = statistic if statistic in _COUNTS else f"{statistic} of {of}{in_words}"
        text = f"{measured} with {100 * confidence:.4g}% intervals"
        if places is not None:
            reliable = np.where(common, np.nan, value)
            _draw_map(axis, places, reliable, high - low, measured.rstrip(","))
        elif named:
            shapes.intervals(axis, labels, value, (low, high), common)
            axis.set_xlabel(text)
        else:
            shown = ~np.isnan(value)
            interval = low[shown], high[shown]
            order = shapes.ranked(axis, value[shown], "reliable", interval, common[shown])
            ends = shapes.both_ends([labels[at] for at in np.flatnonzero(shown)[order].tolist()])
            axis.set(xlabel=f"cells, smallest value first: {ends}", ylabel=text)
    if places is not None or of_all:
        shapes.legend(figure, axes[0])
    return figure


def _hexagons(release: Release | presence.Release) -> list[str] | None:
    """Returns the names of hexagons, if cells are hexagons and nothing else."""
    rules = release.said.records.cell
    if len(rules) == 1 and rules[0].startswith("hexagon("):
        return list(map(str, release.cells.column(0).to_pylist()))
    return None


def _draw_map(
    axis: Axes, hexagons: Sequence[str], value: Floats, width: Floats, label: str
) -> None:
    """Fills each hexagon by its value: grey if not reliable, hatched if its interval is wide.

    A hexagon that is not reliable and lies far from all reliable ones is not drawn; it is named
    below the map.
    """
    every = _outlines(hexagons)
    reliable = ~np.isnan(value)
    near = _near(every, reliable)
    corners = [each for each, here in zip(every, near, strict=True) if here]
    filled_in = reliable[near]
    value = value[near]
    width = width[near]
    span = np.ptp(value[filled_in]) if filled_in.any() else 0
    wide = filled_in & (width > span / 2)
    look: dict[str, Any] = {"ec": "white", "lw": 0.3, "array": value[filled_in]}
    empty: dict[str, Any] = {"fc": PALE, "ec": GREY, "lw": 0.5, "label": "not reliable"}
    hatched: dict[str, Any] = {"fc": "none", "ec": DARK, "lw": 0, "hatch": "////"}
    hatched["label"] = "interval wider than half of what all values span"

    def fill(rows: Bools, style: dict[str, Any]) -> Collection:
        outlines = [corners[at] for at in np.flatnonzero(rows)]
        return axis.add_collection(PolyCollection(outlines, **style))

    filled = fill(filled_in, look)
    if not filled_in.all():
        fill(~filled_in, empty)
    if wide.any():
        fill(wide, hatched)
    axis.autoscale_view()
    middle = np.radians(np.mean([shape[:, 1].mean() for shape in corners]))
    far = [each for each, here in zip(hexagons, near, strict=True) if not here]
    beyond = f"\nnot reliable, and not on this map: {shapes.both_ends(far)}" if far else ""
    axis.set(xlabel=f"longitude{beyond}", ylabel="latitude", aspect=1 / max(np.cos(middle), 0.05))
    axis.get_figure().colorbar(filled, ax=axis, label=label, shrink=0.8)  # type: ignore[union-attr]


def _near(corners: Sequence[Floats], reliable: Bools) -> Bools:
    """Returns which hexagons lie in the extent of the reliable ones, or near it."""
    if not reliable.any():
        return np.ones(len(reliable), dtype=bool)
    low, high = (np.array([end(each, axis=0) for each in corners]) for end in (np.min, np.max))
    lowest = low[reliable].min(axis=0)
    highest = high[reliable].max(axis=0)
    around = np.maximum((highest - lowest) * _AROUND, _CLOSE)
    return np.asarray(((low >= lowest - around) & (high <= highest + around)).all(axis=1))


def _outlines(hexagons: Sequence[str]) -> list[Floats]:
    """Returns the corners of H3 cells in degrees; cells at the date line are not torn apart."""
    from h3ronpy.vector import cells_to_wkb_polygons

    indices = pa.array([int(each, 16) for each in hexagons], pa.uint64())
    polygons: Any = cells_to_wkb_polygons(indices)
    outlines = []
    for polygon in pa.array(polygons).to_pylist():
        corners = np.frombuffer(polygon[_HEAD:], "<f8").reshape(-1, 2).copy()
        if np.ptp(corners[:, 0]) > _CIRCLE / 2:
            corners[corners[:, 0] < 0, 0] += _CIRCLE
        outlines.append(corners)
    return outlines


def draw_counts(counts: Counts) -> Figure:
    """Draws records of each user in a cell, cells of each user, and users of each cell."""
    facts = counts.summary()
    title = f"{facts.users:,} users, {facts.cells:,} cells, {facts.records:,} records"
    figure, axes = shapes.new(title, (13.8, 3.6), (1, 3))
    for axis, values, rank, label in (
        (axes[0], counts.count, "users in cells", "records of a user in a cell"),
        (axes[1], counts.cells_per_user, "users", "cells of a user"),
        (axes[2], counts.users_per_cell, "cells", "users of a cell"),
    ):
        shapes.ranked(axis, values)
        axis.set(xlabel=f"{rank}, fewest first", ylabel=label)
        shapes.logarithmic(axis, "y")
    return figure


def draw_plan(plan: Facts) -> Figure:
    """Draws the errors of planned cells, smallest first: certified ones if a plan has them."""
    errors = plan.relative_error
    guess = np.full(len(plan.relative_error), 0.5)
    rival = "guessing"
    what = "mean noise"
    unit = "over the selected range"
    if plan.certified:
        errors = plan.worst_case_error
        guess = plan.statistic_range / 2
        what = "worst-case error"
        unit = "in its unit"
    elif plan.statistics == (Mean(),):
        deviation = plan.width * SD
        errors = typical_errors(plan) * deviation
        rival = "one number for all cells"
        guess = np.full(len(errors), deviation * math.sqrt(2 * CELLS / math.pi))
        what = "typical error"
        unit = f"for a standard deviation of {deviation:.3g}"
    number = len(plan.statistics)
    place = np.arange(1, len(plan.planned) + 1)
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: {what} of each cell"
    figure, axes = shapes.new(title, (7 * number, 4), (1, number))
    for at, (axis, statistic) in enumerate(zip(axes, plan.statistics, strict=True)):
        rows = at * len(place) + place - 1
        order = shapes.ranked(axis, errors[rows], "this plan")
        if plan.certified and not plan.gaussian:
            label = "no plan does better in this cell"
            axis.plot(place, plan.lower_bound[rows][order], "_", color=GREY, label=label)
        axis.axhline(guess[rows][0], color=ORANGE, label=rival)
        names = [plan.counts.labels[each] for each in plan.planned[order].tolist()]
        if len(place) <= _NAMED:
            axis.set_xticks(place, map(shapes.plain_name, names), rotation=60, ha="right")
        text = f"cells, best first: {shapes.both_ends(names)}"
        axis.set(xlabel=text, ylabel=f"{what} of the {statistic.name}\n{unit}")
        shapes.logarithmic(axis, "y")
    shapes.legend(figure, axes[0])
    return figure


def draw_comparison(found: Comparison[Facts]) -> Figure:
    """Draws the errors of methods: rows if values were drawn for one loss, otherwise curves."""
    if found.assumed is None or len(found.epsilons) > 1:
        return _draw_curves(found)
    rows = found.table().to_pylist()[::-1]
    worst = [row["worst_case_error"] if row["certified"] else None for row in rows]
    return shapes.pairs(
        f"error of every method at epsilon {show(found.epsilons[0])}",
        [row["method"].replace("_", " ") for row in rows],
        "absolute error in the value's unit",
        {"typical": [row["typical_error"] for row in rows], "worst case, certified": worst},
    )


def _draw_curves(found: Comparison[Facts]) -> Figure:
    """Draws a curve for each method, grey where guessing is as good, dotted if not certified."""
    table = found.table().to_pylist()
    drawn = found.assumed is not None
    title = f"What a privacy loss buys: {', '.join(found.statistics)}"
    unit = over(found).partition(" (")[0]
    looks = {LOWER_BOUND: DARK, JOINT_BOUND: GREY}
    panels = {each: f"error of the {each} cell over {unit}" for each in ("worst", "median")}
    if drawn:
        panels = {"typical_error": "typical error in the value's unit"}
    size = (5.6 * len(panels), 5.2)
    shared = {"sharex": True, "sharey": True}
    figure, axes = shapes.new(title, size, (1, len(panels)), **shared)
    for axis, (column, label) in zip(axes, panels.items(), strict=True):
        for at, method in enumerate([*found.methods, *looks]):
            rows = [row for row in table if row["method"] == method]
            certified = drawn or all(row["certified"] for row in rows)
            which = column if certified else f"noise_{column}"
            known = [row for row in rows if row[which] is not None]
            # A plan that releases constants spends nothing, which has no place on the axis.
            losses = [row["spent"] or row["epsilon"] for row in known]
            errors = [row[which] for row in known]
            if errors and method in looks:
                axis.plot(losses, errors, "--", color=looks[method], linewidth=1.4, label=method)
            elif errors:
                name = method if certified else f"{method}: only noise, not certified"
                shapes.curve(axis, losses, errors, name, at, "-" if certified else ":")
        if not drawn:
            axis.axhspan(MIDPOINT_ERROR, 2, color=PALE, zorder=0, label="no better than guessing")
        axis.set(xlabel="privacy loss epsilon, in total", ylabel=label)
        shapes.logarithmic(axis, "x")
        shapes.logarithmic(axis, "y")
    shapes.legend(figure, axes[0], columns=3)
    return figure


RELEASED: dict[type, Callable[[Any, float, str], Figure]] = {
    Release: draw_release,
    presence.Release: draw_release,
}
PLANNED: dict[type, Callable[[Any], Figure]] = {
    Counts: draw_counts,
    Facts: draw_plan,
    Comparison: draw_comparison,
}
