"""Estimators of a mean with equal weights: shoal's, and two of paper 004 that publish values.

The sampled and the combined mean (propositions 3.0.2 and 3.0.3) show a sampled user's value as it
is: they are simulated here and nowhere released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal import unbiased
from shoal.means.estimators import ClippedPlan, SymmetricPlan
from shoal.means.plan import OUTWARD
from shoal.means.plan_file import METHODS
from shoal.means.sums import Grid, NoisySum
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Simulated
from shoal.theory import clipping
from shoal.theory.clipping import Moments

Floats = NDArray[np.float64]
CLIPPED, SYMMETRIC = METHODS
SAMPLED, COMBINED = "sampled_mean", "clipped_plus_residual"
COLOURS = {
    **{"bound": "#333333", CLIPPED: "#1f6f8b", SAMPLED: "#8d99ae"},
    **{COMBINED: "#d1495b", SYMMETRIC: "#2a9d8f"},
}
WORDS = {CLIPPED: "clipped", SAMPLED: "sampled", COMBINED: "combined", SYMMETRIC: "symmetric"}
_SAMPLING, _ROUNDING, _NOISE = 3, 1, 2
_LEAST_MARGIN, _MOST_MARGIN = 2.0**-10, 2.0**30


@dataclass(frozen=True)
class Sampled:
    """c + sum_l (x_l - c) B_l/(n delta), B_l = 1 with probability delta, c the interval's middle.

    Its variance is (E(X - mu)^2 + (1 - delta)(mu - c)^2)/(n delta); a changed value shows with
    probability delta, and then entirely: (0, delta).
    """

    n: int
    moments: Moments
    interval: tuple[float, float]
    loss: Budget
    method: str = SAMPLED
    bias_bound: float = 0.0

    @property
    def chance(self) -> float:
        """With which a user is sampled."""
        return float(self.loss.delta)

    @property
    def centre(self) -> float:
        """c."""
        return (self.interval[0] + self.interval[1]) / 2

    @property
    def variance_bound(self) -> float:
        """At an end of the interval."""
        off = self.interval[1] - self.centre
        one = clipping.deviation(self.moments) ** 2 + (1 - self.chance) * off**2
        return one / self.chance / self.n

    @property
    def rmse_bound(self) -> float:
        """There is no bias."""
        return math.sqrt(self.variance_bound) * OUTWARD

    def estimates(self, values: Floats, source: Simulated) -> Floats:
        """One a row of values."""
        return self.centre + self.sampled(values - self.centre, source)

    def sampled(self, terms: Floats, source: Simulated) -> Floats:
        """Sampled and weighted means of terms, one a row."""
        words = source.bits(terms.size, _SAMPLING).reshape(terms.shape)
        chosen = np.where(words < self.chance * 2.0**64, terms, 0.0)
        return np.asarray(chosen.sum(axis=1) / (self.chance * self.n))


@dataclass(frozen=True)
class Combined(Sampled):
    """Clip to [a - t, b + t], add noise, and add the sampled mean of x - clip(x): (epsilon, delta).

    The parts of estimate - mu are uncorrelated, so the variance is at most
    (sd^2 + tick^2/4 + (1/delta - 1) E(|X - mu| - t)+^2)/n + noise; t makes it least.
    """

    method: str = COMBINED

    @cached_property
    def margin(self) -> float:
        """t."""
        (low, high), size = self.interval, clipping.deviation(self.moments)
        noise, often = 2 / (self.n * float(self.loss.epsilon)) ** 2, (1 / self.chance - 1) / self.n

        def error(t: float) -> float:
            beyond = clipping.excess_square(self.moments, t)
            return often * beyond + noise * (high - low + 2 * t) ** 2

        return clipping.least(error, _LEAST_MARGIN * size, _MOST_MARGIN * size)

    @cached_property
    def grid(self) -> Grid:
        """Where values are clipped."""
        return Grid.around(self.interval[0] - self.margin, self.interval[1] + self.margin)

    @cached_property
    def noise(self) -> NoisySum:
        """On the sum of ticks."""
        most = self.n * (self.grid.ticks // 2 + 1)
        return NoisySum.fit(self.grid.ticks, most, self.loss.epsilon)

    @property
    def noise_variance(self) -> float:
        """In the value's unit squared."""
        return self.noise.variance * (float(self.grid.tick) / self.n) ** 2

    @property
    def variance_bound(self) -> float:
        """Of values, rounding, sampling and noise."""
        one = clipping.deviation(self.moments) ** 2 + float(self.grid.tick) ** 2 / 4
        beyond = (1 / self.chance - 1) * clipping.excess_square(self.moments, self.margin)
        return (one + beyond) / self.n + self.noise_variance

    def estimates(self, values: Floats, source: Simulated) -> Floats:
        """One a row of values."""
        words = source.bits(values.size, _ROUNDING).reshape(values.shape)
        sums = self.grid.whole(values, words).sum(axis=1).tolist()
        steps = np.array(self.noise.add(sums, source, _NOISE), dtype=np.float64)
        inside = (steps / (self.noise.per_unit * self.n) + self.grid.middle) * float(self.grid.tick)
        return inside + self.sampled(values - np.clip(values, *self.grid.edges), source)


Part: TypeAlias = ClippedPlan | SymmetricPlan | Sampled


def estimates(part: Part, values: Floats, source: Simulated) -> Floats:
    """Estimates, one a row of values; NaN where there is none."""
    if isinstance(part, Sampled):
        return part.estimates(values, source)
    drawn = part.runs(values, source)
    return np.array([math.nan if x.steps is None else float(part.value(x)) for x in drawn])


def moments_of(part: Part) -> Moments:
    """Moments that a part's certificate is for."""
    found: Moments = part.moments if isinstance(part, Sampled) else part.request.moments
    return found


@dataclass(frozen=True)
class Asked:
    """What is asked: users, moments, losses, and an interval that holds the mean."""

    n: int
    moments: Moments
    epsilon: float
    delta: float
    interval: tuple[float, float] = (0.0, 1.0)

    def clipped(self, bias: float) -> ClippedPlan:
        """With a bias budget; delta is not used."""
        found: ClippedPlan = self._plan(CLIPPED, interval=self.interval, bias=bias)
        return found

    def sampled(self) -> Sampled:
        """Epsilon is not used."""
        return Sampled(self.n, self.moments, self.interval, Budget.of(0, self.delta))

    def combined(self) -> Combined:
        """Clipped plus sampled residuals."""
        return Combined(self.n, self.moments, self.interval, Budget.of(self.epsilon, self.delta))

    def symmetric(self) -> SymmetricPlan:
        """The interval is not used."""
        found: SymmetricPlan = self._plan(SYMMETRIC, delta=self.delta)
        return found

    def _plan(self, method: str, **more: Any) -> Any:
        common: dict[str, Any] = {"moment": self.moments, "epsilon": self.epsilon}
        return unbiased.plan(method, self.n, **common, interval_by="certified", **more)
