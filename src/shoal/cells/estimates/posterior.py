"""Estimates the value of every cell from released numbers alone (docs/theory/cells.md#values)."""

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
from shoal.theory.user_clipping import SPREAD
from shoal.threads import one_thread

# The fewest cells from whose numbers a common mean is estimated.
_FEWEST = 3
# The standard deviation of users in a left-out cell, in private radii: averaged over cells, most
# users are within one radius.
_OF_RADIUS = 1.5


class Values(NamedTuple):
    """The values of cells in their order, and the ends of their intervals, in the value's unit."""

    value: Floats
    low: Floats
    high: Floats


def values_of(numbers: Estimates, confidence: float, some: Ints | None = None) -> Values:
    """Returns the best estimate of each number, or of `some`, with its interval.

    For means it is the posterior median, for other statistics the number itself. The interval is
    around the number: certified in every data set or, for clipped users, widened by the bias that
    clipping may hide (`intervals.intervals`). The value of a reliable cell of clipped users is
    moved to at most two noise scales from its number. Where users far from all others are clipped,
    the interval is the bounds.
    """
    confidence = check_confidence(confidence)
    basis = numbers.basis
    cells = len(basis.planned)
    rows = some
    if rows is None:
        rows = np.arange(len(numbers.steps))
    value = numbers.value[rows]
    if applies(numbers):
        first = basis.statistics.index(Mean()) * cells
        means = (rows >= first) & (rows < first + cells)
        value[means] = posterior(numbers, rows[means] - first)
    low, high = ends_of(numbers, confidence)
    low = low[rows]
    high = high[rows]
    if numbers.of_vectors:
        lo = basis.bounds.lo
        hi = basis.bounds.hi
        status = np.array(intervals.statuses(numbers))[rows]
        number = numbers.unclamped[rows]
        farthest = intervals.VALUE[basis.law] * numbers.noise_scale[rows]
        near_number = np.clip(value, number - farthest, number + farthest)
        value = np.where(status == "reliable", near_number, value)
        value = np.clip(value, lo, hi)
        # Nothing limits the bias from these users: the interval is all that is possible.
        far = np.isin(status, ("outlying users", "wide bounds"))
        low = np.where(far, lo, low)
        high = np.where(far, hi, high)
    # Intervals are widened so that each holds its value.
    return Values(value, np.minimum(low, value), np.maximum(high, value))


def ends_of(numbers: Estimates, confidence: float) -> tuple[Floats, Floats]:
    """Returns intervals around the numbers, of clipped users or certified."""
    if numbers.of_vectors:
        return intervals.intervals(numbers, confidence)
    return numbers.intervals(confidence)


def applies(numbers: Estimates) -> bool:
    """Returns whether means are released in enough cells for a posterior."""
    return Mean() in numbers.basis.statistics and len(numbers.basis.planned) >= _FEWEST


def posterior(numbers: Estimates, rows: Ints) -> Floats:
    """Returns posterior medians of the means of some planned cells."""
    fit = fitted(numbers)
    median = fit.seen.quantile(fit.prediction, fit.mixture, 0.5, rows)
    return fit.value(numbers, median)


def pooled(numbers: Estimates, confidence: float) -> Values | None:
    """Returns values for the left-out cells; None without such cells or without a posterior.

    A cell has an interval if users were clipped to a radius and planned cells have its labels
    (docs/theory/cells.md#cells-that-are-left-out).
    """
    confidence = check_confidence(confidence)
    basis = numbers.basis
    if not applies(numbers) or len(basis.planned) == len(basis.status):
        return None
    bounds = basis.bounds
    fit = fitted(numbers)
    where = left_out(numbers)
    prediction, has_labels = _predicted(numbers, fit, where)
    value = fit.value(numbers, prediction)
    half = np.where(has_labels, _pooled_half(numbers, fit, confidence), np.nan)
    low = np.maximum(value - half, bounds.lo)
    high = np.minimum(value + half, bounds.hi)
    return Values(value, low, high)


def left_out(numbers: Estimates) -> Ints:
    """Returns the positions of the cells that are left out."""
    return np.flatnonzero(np.array(numbers.basis.status, dtype=object) != "planned")


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy estimates of the cells in one unit, and the scales of their noise.

    The scale of `normal` noise is its standard deviation; otherwise it is the scale of Laplace
    noise.
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
        """Fits the mixture of normals that the residuals around predictions follow."""
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
    """A model of all cells, fitted to the released numbers; lengths are in `unit`, a power of two.

    Places are measured from `middle`. `prior` is the precision with which the common mean is known
    to be at the middle. `prediction` has each cell's prediction from the other cells (by their
    labels if `labelled`), and `mixture` is the distribution of the residuals.
    """

    unit: float
    middle: float
    prior: float
    seen: Seen
    prediction: Floats
    mixture: Mixture
    labelled: bool

    def value(self, numbers: Estimates, place: Floats) -> Floats:
        """Converts places around the middle to the value's unit, and moves them into the bounds."""
        bounds = numbers.basis.bounds
        value = (place + self.middle) * self.unit
        return np.clip(value, bounds.lo, bounds.hi)


class _Predictions(NamedTuple):
    """Predictions of cells, the mixture of their residuals, and whether labels were used."""

    prediction: Floats
    mixture: Mixture
    labelled: bool


@remembered
@one_thread
def fitted(numbers: Estimates) -> Fitted:
    """Fits predictions of the planned cells' means from one another, and their residuals."""
    basis = numbers.basis
    # Very large values would overflow when squared, and very small ones would vanish; so all are
    # divided by `unit`, the power of two above the width.
    _, exponent = math.frexp(basis.bounds.width)
    unit = 2.0**exponent
    estimate, scale, deviation = (each / unit for each in numbers.without_missing_mass())
    # Noise of `total_scale` has the variance of the noise plus that of weighting exchangeable
    # users. The variance of Laplace noise is twice its squared scale.
    square_of_users = deviation**2 / basis.law.variance
    total_scale = np.sqrt(scale**2 + square_of_users)
    middle = float(np.median(estimate))
    prior = 0.0
    if numbers.of_vectors:
        # The centre of all users' means says roughly where the means of cells are: with a standard
        # deviation of a quarter of the width.
        middle = float(np.median(intervals.centres(numbers))) / unit
        prior = (4 * unit / basis.width) ** 2
    labels = useful_columns([codes for codes, _ in _label_codes(numbers)])
    seen = Seen(estimate - middle, total_scale, normal=basis.law.normal)
    best = _best_fit(seen, prior, labels, basis.width / unit)
    return Fitted(unit, middle, prior, seen, *best)


def _best_fit(seen: Seen, prior: float, labels: list[Ints], width: float) -> _Predictions:
    """Returns predictions by label effects if these fit better, else the common mean of all."""
    estimate = seen.estimate
    variance = seen.variance
    # What noise does not explain is variance between cells.
    spread = max(float(np.var(estimate) - variance.mean()), 0.0)
    weight = 1 / (variance + spread)
    common = (weight * estimate).sum() / (weight.sum() + prior)
    # The common mean is computed again with weights from a first mixture of the residuals.
    provisional = seen.fit(np.full(len(estimate), float(common)), width)
    # One row for each cell, one column for each normal of the mixture.
    precision = provisional.share / (provisional.deviation**2 + variance[:, None])
    weight = precision.sum(axis=1)
    common = (weight * estimate).sum() / (precision.sum() + prior)
    flat = np.full(len(estimate), float(common))
    mixture = seen.fit(flat, width)
    if labels:
        by_labels = fitted_without(estimate, variance, labels, prior)
        mixture_by_labels = seen.fit(by_labels, width)
        if mixture_by_labels.likelihood > mixture.likelihood:
            return _Predictions(by_labels, mixture_by_labels, labelled=True)
    return _Predictions(flat, mixture, labelled=False)


def _predicted(numbers: Estimates, fit: Fitted, where: Ints) -> tuple[Floats, Bools]:
    """Returns a prediction of each left-out cell, and whether planned cells have all its labels."""
    if not fit.labelled:
        # Without labels every prediction is the same.
        prediction = np.full(len(where), float(fit.prediction[0]))
        return prediction, np.ones(len(where), dtype=bool)
    cells = numbers.basis.cells.take(where)
    columns = _label_codes(numbers)
    # `useful_columns` returns some of the arrays it is given: their identity tells which.
    useful = {id(codes) for codes in useful_columns([codes for codes, _ in columns])}
    planned_codes = []
    left_out_codes = []
    for column, (codes, labels) in zip(cells.columns, columns, strict=True):
        if id(codes) in useful:
            planned_codes.append(codes)
            place = pc.index_in(column.combine_chunks(), value_set=labels)
            # The code -1 stands for a label that no planned cell has.
            left_out_codes.append(np.asarray(place.fill_null(-1), dtype=np.int64))
    seen = fit.seen
    prediction = predicted(seen.estimate, seen.variance, planned_codes, left_out_codes, fit.prior)
    has_all_labels = np.all([codes >= 0 for codes in left_out_codes], axis=0)
    return prediction, has_all_labels


def _pooled_half(numbers: Estimates, fit: Fitted, confidence: float) -> Floats:
    """Returns half widths of intervals of left-out cells, in the value's unit; NaN if unknown."""
    basis = numbers.basis
    radius = numbers.radius
    hides = intervals.hides_far_users(numbers)
    if radius is None or len(basis.planned) < SPREAD or hides:
        return np.full(len(basis.squares), np.nan)
    residual = fit.seen.estimate - fit.prediction
    variance = fit.seen.variance
    prior = shrinkage.fit_prior(residual, variance)
    spread = shrinkage.widened(prior, variance) * fit.unit
    level = 1 - (1 - confidence) / 2
    # Where rounding makes the level 1, no interval is finite.
    normal = NormalDist().inv_cdf(level) if level < 1 else np.inf
    # The bias that clipping hides in the predictions.
    bias = max(intervals.biases(numbers)) * float(np.median(numbers.noise_scale))
    # A cell differs from its prediction by the spread between cells and by its own few users.
    deviation = np.sqrt(spread**2 + (_OF_RADIUS * radius) ** 2 * basis.squares)
    half: Floats = normal * deviation + bias
    return half


def _label_codes(numbers: Estimates) -> list[tuple[Ints, pa.Array[Any]]]:
    """Returns each key column of the planned cells as codes, with the label of each code."""
    basis = numbers.basis
    cells = basis.cells.take(basis.planned)
    columns = []
    for column in cells.columns:
        encoded = column.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices, dtype=np.int64)
        columns.append((codes, encoded.dictionary))
    return columns
