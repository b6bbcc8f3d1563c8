"""Bias and variance of estimators of a mean, exactly, on known distributions and the worst ones.

The clipped, sampled and combined mean are sums over independent users, so that nothing has to be
simulated: rare values, sampled with a rare chance, would take too many runs. Rounding to ticks,
2^-21 of an interval, is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.means.estimators.clipped import Clipped
from shoal.means.estimators.residual import Residual
from shoal.means.estimators.sampled import Sampled
from shoal.theory import clipping
from shoal_studies.known_distributions import Known, Points, two_points

# Distances of the far point that are tried, over the deviation.
_FARS = np.geomspace(1.0, 1e5, 500)


@dataclass(frozen=True)
class Exact:
    """Of an estimate.

    Attributes:
        bias: Expectation less the mean, in the value's unit.
        variance: In the value's unit squared.
    """

    bias: float
    variance: float

    @property
    def rmse(self) -> float:
        """Root mean squared error of one release."""
        return self.average(1)

    def average(self, releases: int) -> float:
        """Root mean squared error of the average of releases on other users each.

        Example:
            >>> Exact(3.0, 16.0).average(1), Exact(3.0, 1600.0).average(100)
            (5.0, 5.0)
        """
        return math.sqrt(self.bias**2 + self.variance / releases)


def exact(part: Clipped | Sampled, distribution: Known, centre: float) -> Exact:
    """Bias and variance for independent values of a distribution around a centre.

    With Q = sum w^2/W^2, Y the clipped value, R = X - Y and V the variance of the noise: clipped
    E Y - mean and Q var(Y) + V; combined 0 and Q (var(X) + (1/delta - 1) E R^2) + V; sampled 0 and
    Q (var(X) + (1/delta - 1) E(X - c)^2).

    Example:
        >>> from shoal.means.estimators.sampled import Chance
        >>> from shoal.means.estimators.weights import Weights
        >>> coin = Points("coin", (-1.0, 1.0), (0.5, 0.5))
        >>> unit = (clipping.Moment(2, 1),)
        >>> part = Sampled(Weights.equal(100), unit, (-1, 1), Chance(2**63))
        >>> exact(part, coin, 1.0) == Exact(0.0, part.variance_bound / (1 + 2.0**-40))
        True
    """
    often = float(part.weights.squares)
    if isinstance(part, Sampled):
        rare = float(1 / part.chance.exact - 1)
        square = distribution.variance + (centre - part.centre) ** 2
        return Exact(0.0, often * (distribution.variance + rare * square))
    low, high = (edge - centre for edge in part.grid.edges)
    noise = part.noise.variance * (2.0**part.grid.exponent / part.weights.total) ** 2
    if isinstance(part, Residual):
        rare = float(1 / part.chance.exact - 1)
        return Exact(
            0.0, often * (distribution.variance + rare * distribution.beyond(low, high)) + noise
        )
    first, second = distribution.clipped(low, high)
    return Exact(first, often * (second - first**2) + noise)


def worst(part: Clipped | Sampled, releases: int = 1) -> tuple[Points, Exact]:
    """Two points around the upper end of the interval of the largest error, of many distances.

    Not always the worst of all distributions: a lower bound on the largest error.

    Example:
        >>> from fractions import Fraction
        >>> from shoal.means.estimators.clipped import Clipped
        >>> from shoal.means.estimators.weights import Weights
        >>> unit = (clipping.Moment(2, 1),)
        >>> part = Clipped.plan(Weights.equal(1000), unit, (0, 1), Fraction(1), bias=0.05)
        >>> distribution, found = worst(part)
        >>> round(-found.bias, 4), part.bias_bound <= 0.05, found.rmse <= part.rmse_bound
        (0.0499, True, True)
    """
    distributions = two_points(part.moments, _FARS * clipping.deviation(part.moments))
    found = [
        (distribution, exact(part, distribution, part.interval[1]))
        for distribution in distributions
    ]
    return max(found, key=lambda each: each[1].average(releases))
