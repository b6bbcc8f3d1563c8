"""The value of every cell: its noisy mean, the labels of other cells, and what noise there is.

Post-processing of released numbers, so it costs no privacy and changes none of them. A posterior
median leaves a precise number where it is and draws a noisy one to what its labels predict
(docs/theory/user-clipped.md#the-value).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.cells.statistics.mean import Mean
from shoal.theory import scale_mixture, shrinkage
from shoal.theory.label_effects import fitted_without, useful_columns
from shoal.theory.scale_mixture import Mixture

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.cells.estimates import Numbers

    Floats = NDArray[np.float64]

# Cells that say what cells have in common about as surely as noise is known, at least.
_FEW = 30


@dataclass(frozen=True, eq=False)
class Posterior:
    """Values of the released cells, in their order and in the value's unit.

    Attributes:
        value: Posterior medians.
        low: Lower ends of their intervals.
        high: Upper ends.
    """

    value: Floats
    low: Floats
    high: Floats


def values_of(numbers: Numbers, confidence: float) -> Posterior:
    """The best estimate of every number: a posterior median of a mean, else the number itself.

    Args:
        numbers: What was released.
        confidence: Of the intervals.
    """
    plan, (low, high) = numbers.plan, numbers.plain_intervals(confidence)
    value, low, high = numbers.value.copy(), low.copy(), high.copy()
    if applies(numbers):
        found, first = posterior(numbers, confidence), plan.statistics.index(Mean())
        rows = slice(first * len(plan.released), (first + 1) * len(plan.released))
        value[rows] = found.value
        # Certified intervals hold in every data set; a prior of few cells is too uncertain; and
        # nobody knows whom a range that was selected for each cell cuts off.
        if plan.mechanism.range.of_vectors and len(plan.released) >= _FEW:
            low[rows], high[rows] = found.low, found.high
    return Posterior(value, np.minimum(low, value), np.maximum(high, value))


def applies(numbers: Numbers) -> bool:
    """Whether there are means of several cells."""
    plan = numbers.plan
    return Mean() in plan.statistics and len(plan.released) >= plan.parts.shrinkage.fewest


def posterior(numbers: Numbers, confidence: float) -> Posterior:
    """Posterior medians of the means of released cells, and intervals that cover over the cells.

    Args:
        numbers: What was released, of which `applies` holds.
        confidence: Of the intervals, over the cells together.
    """
    plan, fit = numbers.plan, fitted(numbers)
    value = fit.seen.quantile(fit.prediction, fit.mixture, 0.5)
    value = np.clip((value + fit.middle) * fit.unit, plan.bounds.lo, plan.bounds.hi)
    seen = replace(fit.seen, estimate=fit.seen.estimate + fit.middle)
    half = _half(seen, numbers.hidden / fit.unit, confidence) * fit.unit
    low, high = np.maximum(value - half, plan.bounds.lo), np.minimum(value + half, plan.bounds.hi)
    return Posterior(value, low, high)


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy estimates of the cells.

    Attributes:
        estimate: Shape (cells,), in one unit.
        scale: Of the noise, same shape and unit.
        normal: Whether the noise is normal, with these deviations; else Laplace, with these scales.
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

    def quantile(self, prediction: Floats, mixture: Mixture, level: float) -> Floats:
        """Of the posterior."""
        return scale_mixture.posterior_quantile(
            self.estimate, self.scale, prediction, mixture, level, normal=self.normal
        )

    def beyond(self, confidence: float) -> float:
        """What noise of scale 1 exceeds with this much less than certainty."""
        miss = 1 - confidence
        return NormalDist().inv_cdf(1 - miss / 2) if self.normal else math.log(1 / miss)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the released numbers say of all cells, in a unit that is a power of two.

    Attributes:
        unit: In the value's unit.
        middle: The median estimate, in units; the others are around it.
        seen: Estimates of the released cells around the middle, with their noise and what
            exchangeable users leave together.
        prediction: For each cell, by the others.
        mixture: Of what predictions miss.
        labelled: Whether predictions are by labels; else they are a common mean.
    """

    unit: float
    middle: float
    seen: Seen
    prediction: Floats
    mixture: Mixture
    labelled: bool


def fitted(numbers: Numbers) -> Fitted:
    """Predictions and residuals of the means of released cells.

    Args:
        numbers: What was released, of which `applies` holds.
    """
    plan = numbers.plan
    # Squares of values near either end of what numbers reach would be no numbers.
    unit = 2.0 ** math.frexp(plan.bounds.width)[1]
    estimate, scale, deviation = (found / unit for found in numbers.unshrunk())
    # A scale with the variance of noise and of what exchangeable users leave together.
    whole = np.sqrt(scale**2 + deviation**2 / (1 if plan.gaussian else 2))
    middle = float(np.median(estimate))
    labels = useful_columns([codes for codes, _ in label_codes(numbers)])
    seen = Seen(estimate - middle, whole, normal=plan.gaussian)
    return Fitted(unit, middle, seen, *_fitted(seen, labels, plan.width / unit))


def _fitted(
    seen: Seen, labels: list[NDArray[np.int64]], width: float
) -> tuple[Floats, Mixture, bool]:
    """Predictions and residuals with the larger likelihood: with effects of labels, or without."""
    estimate, variance = seen.estimate, seen.variance
    spread = max(float(np.var(estimate) - variance.mean()), 0.0)
    weight = 1 / (variance + spread)
    flat = np.full(len(estimate), float((weight * estimate).sum() / weight.sum()))
    first = seen.fit(flat, width)
    precision = first.share / (first.deviation**2 + variance[:, None])
    flat = np.full(len(estimate), float((precision.sum(axis=1) * estimate).sum() / precision.sum()))
    best = flat, seen.fit(flat, width), False
    if labels:
        told = fitted_without(estimate, variance, labels)
        best = max(best, (told, seen.fit(told, width), True), key=lambda each: each[1].likelihood)
    return best


def _half(seen: Seen, hidden: Floats, confidence: float) -> Floats:
    """Half widths: of the posterior under a widened normal prior, and what clipping may hide."""
    around, estimate = seen.beyond(confidence), seen.estimate
    alone = seen.scale * around + hidden
    noisy = replace(seen, scale=seen.scale + hidden / around)
    prior = shrinkage.fit_prior(estimate, seen.variance)
    wide = replace(prior, deviation=shrinkage.widened(prior, noisy.variance))
    normal = Mixture(np.array([wide.deviation]), np.ones((len(estimate), 1)), 0.0)
    middle = np.full(len(estimate), wide.mean)
    low, high = (
        noisy.quantile(middle, normal, level)
        for level in ((1 - confidence) / 2, (1 + confidence) / 2)
    )
    return np.asarray(np.minimum((high - low) / 2 + float(np.median(hidden)), alone))


def label_codes(numbers: Numbers) -> list[tuple[NDArray[np.int64], pa.Array[Any]]]:
    """Each key column of the released cells as codes, and the labels that they stand for."""
    cells = numbers.plan.occupancy.cells.take(numbers.plan.released)
    return [_codes(cells.column(name)) for name in cells.column_names]


def _codes(column: pa.ChunkedArray[Any]) -> tuple[NDArray[np.int64], pa.Array[Any]]:
    found = column.combine_chunks().dictionary_encode()
    return np.asarray(found.indices, dtype=np.int64), found.dictionary
