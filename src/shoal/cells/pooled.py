"""What the released cells say of the means of cells that are left out: post-processing alone.

A cell that is left out has no number of its own. It gets what is predicted for it: by its labels,
where those predict the released cells best, else their common mean
(docs/theory/user-clipped.md#cells-that-are-left-out).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from shoal.cells.posterior import applies, fitted, label_codes
from shoal.checks import check_confidence
from shoal.theory import shrinkage
from shoal.theory.label_effects import predicted, useful_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.estimates import Numbers
    from shoal.cells.posterior import Fitted

    Floats = NDArray[np.float64]

# Cells that show how far cells spread, at least.
_FEWEST = 10
# Of the private radius: a standard deviation of users. Most are within it, averaged over cells.
_OF_RADIUS = 1.5


@dataclass(frozen=True, eq=False)
class Pooled:
    """Estimates of the means of cells that are left out, in their order and the value's unit.

    Attributes:
        value: What is predicted.
        low: Lower ends of intervals; not a number where none is known.
        high: Upper ends.
    """

    value: Floats
    low: Floats
    high: Floats


def pooled(numbers: Numbers, confidence: float) -> Pooled | None:
    """Estimates for the cells that are left out, or None if there is nothing they follow from.

    value +- z sqrt(t^2 + s^2 sum_l v_gl^2) and what clipping may hide: t is the widened spread of
    the released cells around what is predicted for each by the others, s = 1.5 D the spread of
    users, D the private radius, v_gl the user's share of the cell. Without a private radius, or
    with fewer than ten released cells, there is no interval; nor for labels that no released cell
    has.

    Source: docs/theory/user-clipped.md#cells-that-are-left-out.

    Args:
        numbers: What was released.
        confidence: Of the intervals, over cells that are like the released ones.
    """
    confidence = check_confidence(confidence)
    if not applies(numbers) or len(numbers.plan.released) == len(numbers.plan.status):
        return None
    bounds, fit = numbers.plan.bounds, fitted(numbers)
    prediction, known = _predicted(numbers, fit)
    value = np.clip((prediction + fit.middle) * fit.unit, bounds.lo, bounds.hi)
    half = np.where(known, _half(numbers, fit, confidence), np.nan)
    return Pooled(value, np.maximum(value - half, bounds.lo), np.minimum(value + half, bounds.hi))


def left_out(numbers: Numbers) -> NDArray[np.int64]:
    """Positions of the cells that are left out."""
    return np.flatnonzero(np.array(numbers.plan.status, dtype=object) != "released")


def _predicted(numbers: Numbers, fit: Fitted) -> tuple[Floats, NDArray[np.bool_]]:
    """For every cell left out, and whether released cells have all of its labels."""
    where = left_out(numbers)
    if not fit.labelled:
        return np.full(len(where), float(fit.prediction[0])), np.ones(len(where), dtype=bool)
    cells = numbers.plan.occupancy.cells.take(where)
    columns = dict(zip(cells.column_names, label_codes(numbers), strict=True))
    codes = [own for own, _ in columns.values()]
    used = [any(each is own for each in useful_columns(codes)) for own in codes]
    others = [
        _codes_of(cells.column(name), labels)
        for (name, (_, labels)), use in zip(columns.items(), used, strict=True)
        if use
    ]
    own = [each for each, use in zip(codes, used, strict=True) if use]
    found = predicted(fit.seen.estimate, fit.seen.variance, own, others)
    return found, np.all([each >= 0 for each in others], axis=0)


def _codes_of(column: Any, labels: Any) -> NDArray[np.int64]:
    found = pc.index_in(column.combine_chunks(), value_set=labels)
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def _half(numbers: Numbers, fit: Fitted, confidence: float) -> Floats:
    """Half widths of the intervals, in the value's unit; not numbers where none is known."""
    plan, where = numbers.plan, left_out(numbers)
    radius = numbers.wide_radius
    if radius is None or len(plan.released) < _FEWEST:
        return np.full(len(where), np.nan)
    around, variance = fit.seen.estimate - fit.prediction, fit.seen.variance
    prior = shrinkage.fit_prior(around, variance)
    spread = shrinkage.widened(prior, variance) * fit.unit
    occupancy = plan.occupancy
    share = occupancy.count / occupancy.totals[occupancy.cell]
    squares = np.bincount(occupancy.cell, share**2, minlength=occupancy.n_cells)[where]
    miss = (1 - confidence) / 2
    normal = NormalDist().inv_cdf(1 - miss) if 1 - miss < 1 else np.inf
    hidden = float(np.median(numbers.hidden))
    return np.asarray(normal * np.sqrt(spread**2 + (_OF_RADIUS * radius) ** 2 * squares) + hidden)
