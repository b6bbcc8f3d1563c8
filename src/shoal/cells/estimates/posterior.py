"""The value of every cell, from released numbers alone: docs/theory/cells.md#values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import Bools, Floats, Ints
from shoal.cells.estimates import intervals
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.mechanisms.cell_statistics import Mean
from shoal.checks import check_confidence
from shoal.theory import scale_mixture, shrinkage
from shoal.theory.label_effects import fitted_without, predicted, useful_columns
from shoal.theory.scale_mixture import Mixture
from shoal.threads import one_thread

# Cells that say something of each other; that show how far cells spread; and that say what cells
# have in common about as surely as noise is known; at least.
_FEWEST = 3
_SPREAD = 10
# Of the private radius: a standard deviation of users. Most are within it, averaged over cells.
_OF_RADIUS = 1.5


class Values(NamedTuple):
    """Values of cells in their order, and ends of their intervals, in the value's unit."""

    value: Floats
    low: Floats
    high: Floats


def values_of(numbers: Estimates, confidence: float, some: Ints | None = None) -> Values:
    """Returns the best estimate of numbers: a posterior median of a mean, else the number itself.

    Of all numbers, or of `some`.

    With the number's own interval, certified in every data set or, of clipped users, widened by
    what clipping may hide (`intervals.intervals`). The value of such a cell lies at most two noise
    scales from its number; of a cell that is not reliable it is the median, and inside as well.
    Where users far from all others are clipped, the interval is the bounds.
    """
    plan = numbers.plan
    rows = np.arange(len(numbers.steps)) if some is None else some
    value = numbers.value[rows]
    ends = intervals.intervals if numbers.of_vectors else Estimates.intervals
    low, high = (each[rows] for each in ends(numbers, check_confidence(confidence)))
    if applies(numbers):
        first = plan.statistics.index(Mean()) * len(plan.planned)
        means = (rows >= first) & (rows < first + len(plan.planned))
        value[means] = posterior(numbers, rows[means] - first)
    if numbers.of_vectors:
        own = np.array(intervals.statuses(numbers))[rows]
        near = intervals.VALUE[plan.gaussian] * numbers.noise_scale[rows]
        number = numbers.unclamped[rows]
        held = np.clip(value, number - near, number + near)
        value = np.where(own == "reliable", held, value)
        value = np.clip(value, plan.bounds.lo, plan.bounds.hi)
        # What clipped users hide is not known: the interval is all that is possible.
        far = own == "outlying users"
        low = np.where(far, plan.bounds.lo, low)
        high = np.where(far, plan.bounds.hi, high)
    return Values(value, np.minimum(low, value), np.maximum(high, value))


def applies(numbers: Estimates) -> bool:
    """Returns whether there are means of several cells."""
    return Mean() in numbers.plan.statistics and len(numbers.plan.planned) >= _FEWEST


def posterior(numbers: Estimates, rows: Ints) -> Floats:
    """Returns posterior medians of the means of some planned cells."""
    bounds = numbers.plan.bounds
    fit = fitted(numbers)
    value = fit.seen.quantile(fit.prediction, fit.mixture, 0.5, rows)
    return np.clip((value + fit.middle) * fit.unit, bounds.lo, bounds.hi)


def pooled(numbers: Estimates, confidence: float) -> Values | None:
    """Returns values for the cells that are left out, or None if there is nothing they follow from.

    There is an interval where the spread of users and the cell's labels are known
    (docs/theory/cells.md#cells-that-are-left-out).
    """
    confidence = check_confidence(confidence)
    if not applies(numbers) or len(numbers.plan.planned) == len(numbers.plan.status):
        return None
    bounds = numbers.plan.bounds
    fit = fitted(numbers)
    where = left_out(numbers)
    prediction, known = _predicted(numbers, fit, where)
    value = np.clip((prediction + fit.middle) * fit.unit, bounds.lo, bounds.hi)
    half = np.where(known, _pooled_half(numbers, fit, where, confidence), np.nan)
    return _within(numbers, value, half)


def left_out(numbers: Estimates) -> Ints:
    """Returns the positions of the cells that are left out."""
    return np.flatnonzero(np.array(numbers.plan.status, dtype=object) != "planned")


def _within(numbers: Estimates, value: Floats, half: Floats) -> Values:
    bounds = numbers.plan.bounds
    return Values(value, np.maximum(value - half, bounds.lo), np.minimum(value + half, bounds.hi))


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy estimates of the cells in one unit, and the scales of their noise.

    `normal` noise has deviations as scales, Laplace noise its own.
    """

    estimate: Floats
    scale: Floats
    normal: bool

    @property
    def variance(self) -> Floats:
        """Of the noise."""
        return self.scale**2 * (1 if self.normal else 2)

    def fit(self, prediction: Floats, width: float) -> Mixture:
        """The residuals around predictions."""
        return scale_mixture.fit_mixture(
            self.estimate, self.scale, prediction, width, normal=self.normal
        )

    def quantile(self, prediction: Floats, mixture: Mixture, level: float, rows: Ints) -> Floats:
        """Of the posterior of some cells."""
        return scale_mixture.posterior_quantile(
            self.estimate[rows],
            self.scale[rows],
            prediction[rows],
            replace(mixture, share=mixture.share[rows]),
            level,
            normal=self.normal,
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the released numbers say of all cells, around a middle, in a unit of a power of two.

    `prior` is the precision of the middle as what all have in common, `prediction` of each cell by
    the others (by their labels if `labelled`), `mixture` of what predictions miss.
    """

    unit: float
    middle: float
    prior: float
    seen: Seen
    prediction: Floats
    mixture: Mixture
    labelled: bool


def fitted(numbers: Estimates) -> Fitted:
    """Returns what planned cells say of one another: found once for the same numbers."""
    known: dict[str, Fitted] = vars(numbers)
    if "fitted" not in known:
        known["fitted"] = _fitted(numbers)
    return known["fitted"]


@one_thread
def _fitted(numbers: Estimates) -> Fitted:
    """Returns predictions and residuals of the means of planned cells, of which there are some."""
    plan = numbers.plan
    # Squares of values near either end of what numbers reach would be no numbers.
    unit = 2.0 ** math.frexp(plan.bounds.width)[1]
    estimate, scale, deviation = (each / unit for each in numbers.without_missing_mass())
    # A scale with the variance of noise and of what exchangeable users leave together.
    whole = np.sqrt(scale**2 + deviation**2 / (1 if plan.gaussian else 2))
    middle = float(np.median(estimate))
    prior = 0.0
    if numbers.of_vectors:
        # Where users are says of all cells where they are about.
        middle = float(np.median(intervals.centres(numbers))) / unit
        prior = (4 * unit / plan.width) ** 2
    labels = useful_columns([codes for codes, _ in _label_codes(numbers)])
    seen = Seen(estimate - middle, whole, normal=plan.gaussian)
    return Fitted(unit, middle, prior, seen, *_best_fit(seen, prior, labels, plan.width / unit))


def _best_fit(
    seen: Seen, prior: float, labels: list[Ints], width: float
) -> tuple[Floats, Mixture, bool]:
    """Predictions and residuals with the larger likelihood: with effects of labels, or without."""
    estimate = seen.estimate
    variance = seen.variance
    spread = max(float(np.var(estimate) - variance.mean()), 0.0)
    weight = 1 / (variance + spread)
    flat = np.full(len(estimate), float((weight * estimate).sum() / (weight.sum() + prior)))
    first = seen.fit(flat, width)
    precision = first.share / (first.deviation**2 + variance[:, None])
    common = (precision.sum(axis=1) * estimate).sum() / (precision.sum() + prior)
    flat = np.full(len(estimate), float(common))
    best = flat, seen.fit(flat, width), False
    if labels:
        by_labels = fitted_without(estimate, variance, labels, prior)
        other = by_labels, seen.fit(by_labels, width), True
        best = max(best, other, key=lambda each: each[1].likelihood)
    return best


def _predicted(numbers: Estimates, fit: Fitted, where: Ints) -> tuple[Floats, Bools]:
    """For every cell left out, and whether planned cells have all of its labels."""
    if not fit.labelled:
        return np.full(len(where), float(fit.prediction[0])), np.ones(len(where), dtype=bool)
    cells = numbers.plan.counts.cells.take(where)
    codes = _label_codes(numbers)
    useful = {id(each) for each in useful_columns([own for own, _ in codes])}
    used = [
        (own, pc.index_in(column.combine_chunks(), value_set=labels).fill_null(-1))
        for column, (own, labels) in zip(cells.columns, codes, strict=True)
        if id(own) in useful
    ]
    own = [each for each, _ in used]
    others = [np.asarray(each, dtype=np.int64) for _, each in used]
    found = predicted(fit.seen.estimate, fit.seen.variance, own, others, fit.prior)
    return found, np.all([each >= 0 for each in others], axis=0)


def _pooled_half(numbers: Estimates, fit: Fitted, where: Ints, confidence: float) -> Floats:
    """Half widths of the intervals, in the value's unit; not numbers where none is known."""
    counts = numbers.plan.counts
    radius = numbers.radius
    if radius is None or len(numbers.plan.planned) < _SPREAD:
        return np.full(len(where), np.nan)
    around = fit.seen.estimate - fit.prediction
    variance = fit.seen.variance
    spread = shrinkage.widened(shrinkage.fit_prior(around, variance), variance) * fit.unit
    share = counts.count / counts.totals[counts.cell]
    squares = np.bincount(counts.cell, share**2, minlength=counts.n_cells)[where]
    miss = (1 - confidence) / 2
    normal = NormalDist().inv_cdf(1 - miss) if 1 - miss < 1 else np.inf
    hidden = max(intervals.biases(numbers)) * float(np.median(numbers.noise_scale))
    return np.asarray(normal * np.sqrt(spread**2 + (_OF_RADIUS * radius) ** 2 * squares) + hidden)


def _label_codes(numbers: Estimates) -> list[tuple[Ints, pa.Array[Any]]]:
    """Each key column of the planned cells as codes, and the labels that they stand for."""
    found = []
    for column in numbers.plan.counts.cells.take(numbers.plan.planned).columns:
        encoded = column.combine_chunks().dictionary_encode()
        found.append((np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary))
    return found
