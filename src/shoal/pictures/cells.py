"""Draws pictures of cells: counts, plans, comparisons, frontiers, and released values."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
from shoal.distributions import plan as distributions
from shoal.pictures import shapes
from shoal.pictures.shapes import BLUE, DARK, GREY, MOST_NAMED, ORANGE, PALE
from shoal.presence import plan as presence
from shoal.privacy.budget import show
from shoal.release.envelope import CONFIDENCE
from shoal.release.release import BinRelease, CellRelease

# A plan of more cells has no room for their names.
_NAMED = 40
# Statistics that are not about values.
_COUNTS = ("users", "records")
# The quantiles of a box, and what Matplotlib calls them.
_OF_BOX = (0.1, 0.25, 0.5, 0.75, 0.9)
_PARTS_OF_BOX = ("whislo", "q1", "med", "q3", "whishi")
# The largest number of statistics in one picture.
_MOST_PANELS = 6
# Bytes before the corners of a polygon: byte order, kind, number of rings, number of points.
_HEAD = 13
# Degrees of longitude around the earth.
_CIRCLE = 360.0
# The map goes beyond the extent of the reliable hexagons by this part of it.
_AROUND = 0.5
# The fewest degrees by which it does.
_CLOSE = 2.0


def draw_release(release: CellRelease[Any, Any], confidence: float, label: str = "") -> Figure:
    """Draws each cell's value with its interval, in a panel for each statistic; hexagons as a map.

    Few cells come in their own order with their names, many from the smallest value to the largest.
    Quantiles and histograms are boxes in one panel.
    """
    table = release.table(confidence)
    labels = keys.labels(release.cells)
    statistics = [str(each) for each in table["statistic"].unique().to_pylist()]
    values = shapes.plain_name(release.said.records.value or "records")
    if not labels:
        figure, axes = shapes.new(_title(release, values, table, []), (8.5, 2.0))
        axes[0].text(0.5, 0.5, "no cell was found", ha="center", transform=axes[0].transAxes)
        return figure
    hexagons = _hexagons(release)
    boxes = [] if hexagons else _in_boxes(release)
    statistics = [each for each in statistics if each not in boxes]
    statistics = statistics[: _MOST_PANELS - bool(boxes)]
    is_named = hexagons is None and len(labels) <= MOST_NAMED
    in_words = f", {shapes.plain_name(label)}," if label else ""
    height = 3.8
    if is_named:
        height = 1.8 + 0.19 * len(labels)
    elif hexagons:
        height = 6.0
    title = _title(release, values, table, [*statistics, *boxes])
    panels = len(statistics) + bool(boxes)
    figure, axes = shapes.new(title, (8.5, height * panels), (panels, 1))
    for axis, statistic in zip(axes, statistics, strict=False):
        rows = table.filter(pc.equal(table["statistic"], pa.scalar(statistic)))
        value, low, high = (
            rows[name].to_numpy().astype(float) for name in ("value", "low", "high")
        )
        common = _common(rows)
        measured = statistic if statistic in _COUNTS else f"{statistic} of {values}{in_words}"
        text = f"{measured} with {100 * confidence:.4g}% intervals"
        if hexagons is not None:
            reliable = np.where(common, np.nan, value)
            _draw_map(axis, hexagons, reliable, high - low, measured.rstrip(","))
        elif is_named:
            shapes.intervals(axis, labels, value, (low, high), common)
            axis.set_xlabel(text)
        else:
            known = ~np.isnan(value)
            interval = low[known], high[known]
            order = shapes.ranked(axis, value[known], "reliable", interval, common[known])
            ranked = [labels[at] for at in np.flatnonzero(known)[order].tolist()]
            ends = shapes.both_ends(ranked)
            axis.set(xlabel=f"cells, smallest value first: {ends}", ylabel=text)
    if boxes:
        text = f"10, 25, 50, 75 and 90% quantile of {values}{in_words}\nand interval of the median"
        _draw_boxes(axes[-1], release, labels, confidence, text)
    # The legend says what grey is, so that it is needed only if something is grey.
    grey = [axis for axis in axes if "not reliable" in axis.get_legend_handles_labels()[1]]
    if hexagons is not None or grey:
        shapes.legend(figure, [*grey, *axes][0])
    return figure


def _in_boxes(release: CellRelease[Any, Any]) -> list[str]:
    """Returns the statistics that boxes show: quantiles, and all of histograms that were found."""
    if not isinstance(release, BinRelease):
        return []
    shown = ("median", "histogram", "cdf")
    found = []
    for row in release.rows(CONFIDENCE):
        # A histogram with thresholds of its own has a panel for each share.
        if row.asked in shown or row.asked.startswith("quantile("):
            found.append(row.name)
    return found


def _common(rows: pa.Table) -> Bools:
    """Returns which rows are not reliable."""
    found = pc.equal(rows["source"], pa.scalar("common"))
    return np.array(found.to_pylist(), dtype=bool)


def _draw_boxes(
    axis: Axes, release: CellRelease[Any, Any], labels: Sequence[str], confidence: float, text: str
) -> None:
    """Draws a box for each cell, the smallest median first, with the interval of its median.

    With many cells it draws lines of these quantiles in place of boxes.
    """
    assert isinstance(release, BinRelease)
    found = release.quantiles(_OF_BOX, confidence)
    # The table has a block of rows for each quantile.
    values = found["value"].to_numpy().reshape(len(_OF_BOX), -1)
    middle = len(_OF_BOX) // 2
    median = found.slice(middle * len(labels), len(labels))
    low = median["low"].to_numpy()
    high = median["high"].to_numpy()
    common = _common(median)
    order = np.argsort(values[middle], kind="stable")
    names = [labels[at] for at in order.tolist()]
    place = np.arange(len(order))
    if len(order) > MOST_NAMED:
        ranks = place + 1
        for level, row in zip(_OF_BOX, values, strict=True):
            # The median has the thickest line.
            thickness = 2 - 3 * abs(level - 0.5)
            axis.plot(ranks, row[order], color=BLUE, lw=thickness)
        axis.vlines(ranks, low[order], high[order], color=GREY, lw=0.4)
        axis.set_xlabel(f"cells, smallest median first: {shapes.both_ends(names)}")
        axis.set_ylabel(text)
        return
    axis.set_xlabel(text)
    for rows, look in shapes.looks(common[order], len(order), "reliable"):
        at = order[rows]
        boxes = []
        for cell in at.tolist():
            ends = zip(_PARTS_OF_BOX, values[:, cell].tolist(), strict=True)
            boxes.append(dict(ends))
        colour = look["color"]
        line = {"color": colour}
        thick = {"color": colour, "lw": 2.5}
        axis.bxp(
            boxes,
            positions=place[rows],
            orientation="horizontal",
            widths=0.6,
            showfliers=False,
            manage_ticks=False,
            boxprops=line,
            whiskerprops=line,
            capprops=line,
            medianprops=thick,
        )
        axis.hlines(place[rows], low[at], high[at], lw=5, alpha=0.25, **look)
    axis.set_yticks(place, [shapes.plain_name(each, 40) for each in names], fontsize=8)
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")


def _title(
    release: CellRelease[Any, Any], values: str, table: pa.Table, statistics: Sequence[str]
) -> str:
    """Returns the title of a picture: values, how many cells are reliable, epsilon, sentences.

    Of several statistics it says the fewest and the most reliable cells.
    """
    kind = "simulated, not private: " if release.simulated else ""
    cells = release.cells.num_rows
    reliable = table.filter(pc.equal(table["status"], pa.scalar("reliable")))
    names = reliable["statistic"].to_pylist()
    # Without a cell there is no statistic, either.
    counts = [names.count(each) for each in statistics] or [0]
    fewest = min(counts)
    most = max(counts)
    many = f"{most:,}"
    if fewest < most:
        many = f"{fewest:,} to {most:,}"
    of_all = ""
    if fewest < cells:
        of_all = f" of {cells:,}"
    what = "cell" if many == "1" and not of_all else "cells"
    title = f"{kind}{values}, {many}{of_all} {what} reliable, epsilon {show(release.epsilon)}"
    if release.plan_model.family == "cells":
        return "\n".join([title, *release.published.sentences])
    return title


def _hexagons(release: CellRelease[Any, Any]) -> list[str] | None:
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
    all_outlines = _outlines(hexagons)
    reliable = ~np.isnan(value)
    is_near = _near(all_outlines, reliable)
    outlines = [each for each, near in zip(all_outlines, is_near, strict=True) if near]
    far = [each for each, near in zip(hexagons, is_near, strict=True) if not near]
    reliable = reliable[is_near]
    value = value[is_near]
    width = width[is_near]
    span = np.ptp(value[reliable]) if reliable.any() else 0
    wide = reliable & (width > span / 2)
    look: dict[str, Any] = {"ec": "white", "lw": 0.3, "array": value[reliable]}
    empty: dict[str, Any] = {"fc": PALE, "ec": GREY, "lw": 0.5, "label": "not reliable"}
    hatched: dict[str, Any] = {"fc": "none", "ec": DARK, "lw": 0, "hatch": "////"}
    hatched["label"] = "interval wider than half of what all values span"

    def fill(rows: Bools, style: dict[str, Any]) -> Collection:
        """Draws some hexagons in a style."""
        chosen = [outlines[at] for at in np.flatnonzero(rows)]
        return axis.add_collection(PolyCollection(chosen, **style))

    filled = fill(reliable, look)
    if not reliable.all():
        fill(~reliable, empty)
    if wide.any():
        fill(wide, hatched)
    axis.autoscale_view()
    # Here a degree of longitude is this much shorter than one of latitude; not so near the poles.
    latitude = np.radians(np.mean([each[:, 1].mean() for each in outlines]))
    aspect = 1 / max(np.cos(latitude), 0.05)
    beyond = f"\nnot reliable, and not on this map: {shapes.both_ends(far)}" if far else ""
    axis.set(xlabel=f"longitude{beyond}", ylabel="latitude", aspect=aspect)
    axis.get_figure().colorbar(filled, ax=axis, label=label, shrink=0.8)  # type: ignore[union-attr]


def _near(corners: Sequence[Floats], reliable: Bools) -> Bools:
    """Returns which hexagons lie in the extent of the reliable ones, or near it."""
    if not reliable.any():
        return np.ones(len(reliable), dtype=bool)
    # The ends of each hexagon in longitude and latitude.
    low = np.array([each.min(axis=0) for each in corners])
    high = np.array([each.max(axis=0) for each in corners])
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
        longitude = corners[:, 0]
        if np.ptp(longitude) > _CIRCLE / 2:
            longitude[longitude < 0] += _CIRCLE
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
    drawn = _errors_of(plan)
    statistics = len(plan.statistics)
    cells = len(plan.planned)
    ranks = np.arange(1, cells + 1)
    title = f"{plan.method} plan, epsilon {show(plan.exact_epsilon)}: {drawn.what} of each cell"
    figure, axes = shapes.new(title, (7 * statistics, 4), (1, statistics))
    for at, (axis, statistic) in enumerate(zip(axes, plan.statistics, strict=True)):
        # Errors come statistic by statistic.
        rows = slice(at * cells, (at + 1) * cells)
        order = shapes.ranked(axis, drawn.errors[rows], "this plan")
        if plan.certified and plan.law.has_limits:
            label = "no plan does better in this cell"
            axis.plot(ranks, plan.lower_bound[rows][order], "_", color=GREY, label=label)
        axis.axhline(drawn.rival[rows][0], color=ORANGE, label=drawn.rival_name)
        names = [plan.counts.labels[each] for each in plan.planned[order].tolist()]
        if cells <= _NAMED:
            axis.set_xticks(ranks, map(shapes.plain_name, names), rotation=60, ha="right")
        text = f"cells, best first: {shapes.both_ends(names)}"
        axis.set(xlabel=text, ylabel=f"{drawn.what} of the {statistic.name}\n{drawn.unit}")
        shapes.logarithmic(axis, "y")
    shapes.legend(figure, axes[0])
    return figure


class _Errors(NamedTuple):
    """The errors of a plan, those of a rival that reads no data, and words for them."""

    errors: Floats
    rival: Floats
    what: str
    rival_name: str
    unit: str


def _errors_of(plan: Facts) -> _Errors:
    """Returns the errors of a plan that a picture shows, shape (numbers,)."""
    if plan.certified:
        guess = plan.statistic_range / 2
        return _Errors(plan.worst_case_error, guess, "worst-case error", "guessing", "in its unit")
    if plan.statistics == (Mean(),):
        deviation = plan.width * SD
        errors = typical_errors(plan) * deviation
        # The mean distance of normal cells from their common mean.
        common = np.full(len(errors), deviation * math.sqrt(2 * CELLS / math.pi))
        unit = f"for a standard deviation of {deviation:.3g}"
        return _Errors(errors, common, "typical error", "one number for all cells", unit)
    errors = plan.relative_error
    guess = np.full(len(errors), 0.5)
    return _Errors(errors, guess, "mean noise", "guessing", "over the selected range")


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
    # Values were drawn to measure typical errors; else errors are certified ones, or noise alone.
    is_typical = found.assumed is not None
    title = f"What a privacy loss buys: {', '.join(found.statistics)}"
    unit = over(found).partition(" (")[0]
    bound_colours = {LOWER_BOUND: DARK, JOINT_BOUND: GREY}
    # The columns of the table that are drawn, and their titles.
    panels = {each: f"error of the {each} cell over {unit}" for each in ("worst", "median")}
    if is_typical:
        panels = {"typical_error": "typical error in the value's unit"}
    size = (5.6 * len(panels), 5.2)
    shared = {"sharex": True, "sharey": True}
    figure, axes = shapes.new(title, size, (1, len(panels)), **shared)
    for axis, (column, label) in zip(axes, panels.items(), strict=True):
        for at, method in enumerate([*found.methods, *bound_colours]):
            rows = [row for row in table if row["method"] == method]
            is_solid = is_typical or all(row["certified"] for row in rows)
            error_column = column if is_solid else f"noise_{column}"
            known = [row for row in rows if row[error_column] is not None]
            # A plan that releases constants spends nothing, which has no place on the axis.
            losses = [row["spent"] or row["epsilon"] for row in known]
            errors = [row[error_column] for row in known]
            if errors and method in bound_colours:
                colour = bound_colours[method]
                axis.plot(losses, errors, "--", color=colour, linewidth=1.4, label=method)
            elif errors:
                name = method if is_solid else f"{method}: only noise, not certified"
                shapes.curve(axis, losses, errors, name, at, "-" if is_solid else ":")
        if not is_typical:
            axis.axhspan(MIDPOINT_ERROR, 2, color=PALE, zorder=0, label="no better than guessing")
        axis.set(xlabel="privacy loss epsilon, in total", ylabel=label)
        shapes.logarithmic(axis, "x")
        shapes.logarithmic(axis, "y")
    shapes.legend(figure, axes[0], columns=3)
    return figure


RELEASED: dict[type, Callable[[Any, float, str], Figure]] = {
    Release: draw_release,
    distributions.Release: draw_release,
    presence.Release: draw_release,
}
PLANNED: dict[type, Callable[[Any], Figure]] = {
    Counts: draw_counts,
    Facts: draw_plan,
    Comparison: draw_comparison,
}
