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
from shoal.cells.facts.remembered import remembered
from shoal.cells.mechanisms.cell_statistics import Mean
from shoal.checks import check_confidence
from shoal.theory import scale_mixture, shrinkage
from shoal.theory.label_effects import fitted_without, predicted, useful_columns
from shoal.theory.scale_mixture import Mixture
from shoal.threads import one_thread

# The fewest cells that say something of each other.
_FEWEST = 3
# The fewest cells that show how far cells spread.
_SPREAD = 10
# A standard deviation of users over the private radius: averaged over cells, most are within it.
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
    confidence = check_confidence(confidence)
    plan = numbers.plan
    cells = len(plan.planned)
    rows = some
    if rows is None:
        rows = np.arange(len(numbers.steps))
    value = numbers.value[rows]
    if applies(numbers):
        first = plan.statistics.index(Mean()) * cells
        means = (rows >= first) & (rows < first + cells)
        value[means] = posterior(numbers, rows[means] - first)
    find = intervals.intervals if numbers.of_vectors else Estimates.intervals
    low, high = find(numbers, confidence)
    low = low[rows]
    high = high[rows]
    if numbers.of_vectors:
        lo = plan.bounds.lo
        hi = plan.bounds.hi
        status = np.array(intervals.statuses(numbers))[rows]
        number = numbers.unclamped[rows]
        near = intervals.VALUE[plan.gaussian] * numbers.noise_scale[rows]
        held = np.clip(value, number - near, number + near)
        value = np.where(status == "reliable", held, value)
        value = np.clip(value, lo, hi)
        # What clipped users hide is not known: the interval is all that is possible.
        far = status == "outlying users"
        low = np.where(far, lo, low)
        high = np.where(far, hi, high)
    # A value lies inside its interval.
    return Values(value, np.minimum(low, value), np.maximum(high, value))


def applies(numbers: Estimates) -> bool:
    """Returns whether there are means of several cells."""
    return Mean() in numbers.plan.statistics and len(numbers.plan.planned) >= _FEWEST


def posterior(numbers: Estimates, rows: Ints) -> Floats:
    """Returns posterior medians of the means of some planned cells."""
    fit = fitted(numbers)
    median = fit.seen.quantile(fit.prediction, fit.mixture, 0.5, rows)
    return fit.value(numbers, median)


def pooled(numbers: Estimates, confidence: float) -> Values | None:
    """Returns values for the cells that are left out, or None if there is nothing they follow from.

    There is an interval where the spread of users and the cell's labels are known
    (docs/theory/cells.md#cells-that-are-left-out).
    """
    confidence = check_confidence(confidence)
    plan = numbers.plan
    if not applies(numbers) or len(plan.planned) == len(plan.status):
        return None
    bounds = plan.bounds
    fit = fitted(numbers)
    where = left_out(numbers)
    prediction, known = _predicted(numbers, fit, where)
    value = fit.value(numbers, prediction)
    half = _pooled_half(numbers, fit, where, confidence)
    half = np.where(known, half, np.nan)
    low = np.maximum(value - half, bounds.lo)
    high = np.minimum(value + half, bounds.hi)
    return Values(value, low, high)


def left_out(numbers: Estimates) -> Ints:
    """Returns the positions of the cells that are left out."""
    return np.flatnonzero(np.array(numbers.plan.status, dtype=object) != "planned")


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
        """The variance of the noise."""
        square = self.scale**2
        return square if self.normal else square * 2

    def fit(self, prediction: Floats, width: float) -> Mixture:
        """Returns the mixture that residuals around predictions follow."""
        return scale_mixture.fit_mixture(
            self.estimate,
            self.scale,
            prediction,
            width,
            normal=self.normal,
        )

    def quantile(
        self,
        prediction: Floats,
        mixture: Mixture,
        level: float,
        rows: Ints,
    ) -> Floats:
        """Returns a quantile of the posterior of each of some cells."""
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

    def value(self, numbers: Estimates, place: Floats) -> Floats:
        """Returns places around the middle in the value's unit, moved into the bounds."""
        bounds = numbers.plan.bounds
        value = (place + self.middle) * self.unit
        return np.clip(value, bounds.lo, bounds.hi)


@remembered
@one_thread
def fitted(numbers: Estimates) -> Fitted:
    """Returns what planned cells say of one another: predictions and residuals of their means."""
    plan = numbers.plan
    # Squares of values near either end of what numbers reach would be no numbers.
    unit = 2.0 ** math.frexp(plan.bounds.width)[1]
    estimate, scale, deviation = (each / unit for each in numbers.without_missing_mass())
    users = deviation**2
    if not plan.gaussian:
        users = users / 2
    # This scale has the variance of noise and of what exchangeable users leave together.
    whole = np.sqrt(scale**2 + users)
    middle = float(np.median(estimate))
    prior = 0.0
    if numbers.of_vectors:
        # Where users are says of all cells where they are about.
        middle = float(np.median(intervals.centres(numbers))) / unit
        prior = (4 * unit / plan.width) ** 2
    labels = useful_columns([codes for codes, _ in _label_codes(numbers)])
    seen = Seen(estimate - middle, whole, normal=plan.gaussian)
    best = _best_fit(seen, prior, labels, plan.width / unit)
    return Fitted(unit, middle, prior, seen, *best)


def _best_fit(
    seen: Seen,
    prior: float,
    labels: list[Ints],
    width: float,
) -> tuple[Floats, Mixture, bool]:
    """Returns predictions and residuals, with effects of labels where these are likelier."""
    estimate = seen.estimate
    variance = seen.variance
    spread = max(float(np.var(estimate) - variance.mean()), 0.0)
    weight = 1 / (variance + spread)
    common = (weight * estimate).sum() / (weight.sum() + prior)
    first = seen.fit(np.full(len(estimate), float(common)), width)
    precision = first.share / (first.deviation**2 + variance[:, None])
    weight = precision.sum(axis=1)
    common = (weight * estimate).sum() / (precision.sum() + prior)
    flat = np.full(len(estimate), float(common))
    mixture = seen.fit(flat, width)
    if labels:
        by_labels = fitted_without(estimate, variance, labels, prior)
        other = seen.fit(by_labels, width)
        if other.likelihood > mixture.likelihood:
            return by_labels, other, True
    return flat, mixture, False


def _predicted(numbers: Estimates, fit: Fitted, where: Ints) -> tuple[Floats, Bools]:
    """Returns predictions of cells left out, and whether planned cells have all of their labels."""
    if not fit.labelled:
        prediction = float(fit.prediction[0])
        found = np.full(len(where), prediction)
        return found, np.ones(len(where), dtype=bool)
    cells = numbers.plan.counts.cells.take(where)
    columns = _label_codes(numbers)
    useful = {id(codes) for codes in useful_columns([codes for codes, _ in columns])}
    planned = []
    others = []
    for column, (codes, labels) in zip(cells.columns, columns, strict=True):
        if id(codes) in useful:
            planned.append(codes)
            place = pc.index_in(column.combine_chunks(), value_set=labels)
            others.append(np.asarray(place.fill_null(-1), dtype=np.int64))
    seen = fit.seen
    found = predicted(seen.estimate, seen.variance, planned, others, fit.prior)
    return found, np.all([each >= 0 for each in others], axis=0)


def _pooled_half(
    numbers: Estimates,
    fit: Fitted,
    where: Ints,
    confidence: float,
) -> Floats:
    """Returns half widths of intervals, in the value's unit; not numbers where none is known."""
    plan = numbers.plan
    counts = plan.counts
    cell = counts.cell
    radius = numbers.radius
    if radius is None or len(plan.planned) < _SPREAD:
        return np.full(len(where), np.nan)
    around = fit.seen.estimate - fit.prediction
    variance = fit.seen.variance
    prior = shrinkage.fit_prior(around, variance)
    spread = shrinkage.widened(prior, variance) * fit.unit
    share = counts.count / counts.totals[cell]
    squares = np.bincount(cell, share**2, minlength=counts.n_cells)[where]
    level = 1 - (1 - confidence) / 2
    # A miss that is lost in rounding leaves no finite interval.
    normal = NormalDist().inv_cdf(level) if level < 1 else np.inf
    noise = float(np.median(numbers.noise_scale))
    hidden = max(intervals.biases(numbers)) * noise
    deviation = np.sqrt(spread**2 + (_OF_RADIUS * radius) ** 2 * squares)
    half: Floats = normal * deviation + hidden
    return half


def _label_codes(numbers: Estimates) -> list[tuple[Ints, pa.Array[Any]]]:
    """Returns each key column of the planned cells as codes, and the labels that they stand for."""
    plan = numbers.plan
    cells = plan.counts.cells.take(plan.planned)
    found = []
    for column in cells.columns:
        encoded = column.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices, dtype=np.int64)
        found.append((codes, encoded.dictionary))
    return found
