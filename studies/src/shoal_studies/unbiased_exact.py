"""Bias and variance of estimators of a mean, exactly, on known distributions and the worst ones.

The clipped, sampled and combined mean are sums over independent users, so that nothing has to be
simulated: rare values, sampled with a rare chance, would take too many runs. Rounding to ticks,
2^-21 of an interval, is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.means.estimators import ClippedPlan
from shoal.theory import clipping
from shoal_studies.known_distributions import Known, Points, two_points
from shoal_studies.paper_004_estimators import Combined, Sampled, moments_of

# Distances of the far point that are tried, over the deviation.
_FARS = np.geomspace(1.0, 1e5, 500)


@dataclass(frozen=True)
class Exact:
    """Of an estimate."""

    bias: float
    variance: float

    @property
    def rmse(self) -> float:
        """Root mean squared error of one release."""
        return self.average(1)

    def average(self, releases: int) -> float:
        """Root mean squared error of the average of releases on other users each."""
        return math.sqrt(self.bias**2 + self.variance / releases)


def exact(part: ClippedPlan | Sampled, distribution: Known, centre: float) -> Exact:
    """Bias and variance for independent values of a distribution around a centre.

    With Y the clipped value, R = X - Y and V the variance of the noise: clipped E Y - mean and
    var(Y)/n + V; combined 0 and (var(X) + (1/delta - 1) E R^2)/n + V; sampled 0 and
    (var(X) + (1/delta - 1) E(X - c)^2)/n.

    Example:
        >>> from shoal_studies.paper_004_estimators import Asked
        >>> coin = Points("coin", (-1.0, 1.0), (0.5, 0.5))
        >>> part = Asked(100, (clipping.Moment(2, 1),), 1.0, 0.5, (-1, 1)).sampled()
        >>> exact(part, coin, 1.0) == Exact(0.0, part.variance_bound)
        True
    """
    if isinstance(part, ClippedPlan):
        low, high = (edge - centre for edge in part.choice.grid.edges)
        first, second = distribution.clipped(low, high)
        noise = part.choice.noise.variance * (float(part.choice.grid.tick) / part.n) ** 2
        return Exact(first, (second - first**2) / part.n + noise)
    rare = 1 / part.chance - 1
    if isinstance(part, Combined):
        low, high = (edge - centre for edge in part.grid.edges)
        one = distribution.variance + rare * distribution.beyond(low, high)
        return Exact(0.0, one / part.n + part.noise_variance)
    square = distribution.variance + (centre - part.centre) ** 2
    return Exact(0.0, (distribution.variance + rare * square) / part.n)


def worst(part: ClippedPlan | Sampled, releases: int = 1) -> tuple[Points, Exact]:
    """Two points around the upper end of the interval of the largest error, of many distances.

    Not always the worst of all distributions: a lower bound on the largest error.

    Example:
        >>> from shoal_studies.paper_004_estimators import Asked
        >>> part = Asked(1000, (clipping.Moment(2, 1),), 1.0, 0.0).clipped(0.05)
        >>> distribution, found = worst(part)
        >>> round(-found.bias, 4), part.bias_bound <= 0.05, found.rmse <= part.rmse_bound
        (0.0499, True, True)
    """
    moments = moments_of(part)
    distributions = two_points(moments, _FARS * clipping.deviation(moments))
    interval = part.request.interval if isinstance(part, ClippedPlan) else part.interval
    high = 0.0 if interval is None else interval[1]
    found = [(each, exact(part, each, high)) for each in distributions]
    return max(found, key=lambda each: each[1].average(releases))
