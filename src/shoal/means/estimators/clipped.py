"""The clipped mean with Laplace noise: pure privacy, a bias that is bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.errors import InputError
from shoal.means.estimators.base import OUTWARD, Drawn, Estimator
from shoal.means.estimators.grid import Grid
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.normal import Squares
from shoal.means.estimators.squares import Centred, NoisySquares
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise
from shoal.theory import clipping

_ROUNDING, _NOISE = 1, 2
_ENDS = 2
_FARTHEST = 2.0**300
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Clipped(Estimator):
    """Mean of values clipped to [a - t, b + t], plus noise: (epsilon, 0).

    The mean mu is in [a, b]. The bias is at most E(X - mu - t)+ (`clipping.one_sided`), the
    variance at most sum w^2/W^2 (sd^2 + tick^2/4) + noise, for clipping brings no two values
    further apart. One user moves the sum by at most its weight times the ticks of the grid.

    Source: paper 004, Proposition 3.0.1.

    Attributes:
        interval: Public [a, b] that holds the mean, in the value's unit.
        grid: Where values are clipped.
        noise: On the sum of weighed ticks.

    Raises:
        InputError: The parts do not fit each other.

    Example:
        >>> from shoal.means.estimators.weights import Weights
        >>> moments = (clipping.Moment(2, 1),)
        >>> found = Clipped.plan(Weights.equal(1000), moments, (0, 1), Fraction(1), bias=0.05)
        >>> found.bias_bound <= 0.05, round(found.rmse_bound, 4)
        (True, 0.0611)
    """

    interval: Interval
    grid: Grid
    noise: NoisySum
    name: ClassVar[str] = "clipped_mean"

    def __post_init__(self) -> None:
        check_interval(self.interval)
        low, high = self.grid.edges
        if not (low <= self.interval[0] and self.interval[1] <= high):
            raise InputError("a mean outside of where values are clipped", "inside", "plan anew")
        if self.noise != fitting(self.noise, self.weights, self.grid.ticks):
            raise InputError("noise that does not fit weights and ticks", "its own", "plan anew")
        self._check_squares()

    @classmethod
    def plan(
        cls,
        weights: Weights,
        moments: clipping.Moments,
        interval: Interval,
        epsilon: Fraction,
        *,
        bias: float,
    ) -> Clipped:
        """The least margin that keeps a bias budget.

        Raises:
            InputError: A budget, interval or epsilon that is not usable.
        """
        low, high = check_interval(interval)
        t = clipping.margin(moments, bias / OUTWARD) * OUTWARD
        # With mean and interval a point, and a generous budget, something is left to clip to.
        t = max(t, 2.0**-10 * clipping.deviation(moments))
        # Far from 0, or for a wide interval, the sums may be rounded inwards.
        grid = Grid.around(math.nextafter(low - t, -math.inf), math.nextafter(high + t, math.inf))
        noise = noise_for(weights, grid.ticks, epsilon)
        return cls(weights, moments, (low, high), grid, noise)

    @cached_property
    def margin(self) -> float:
        """t: how far the mean is at least from where values are clipped."""
        low, high = self.grid.edges
        return min(self.interval[0] - low, high - self.interval[1])

    @cached_property
    def loss(self) -> Budget:
        """Epsilon of the noise; delta is 0."""
        return Budget(self.noise.loss)

    @cached_property
    def parameters(self) -> Mapping[str, int | str]:
        """Grid and noise, and those of squares if there are."""
        inner = clipping_parameters(self.grid, self.noise)
        found: Mapping[str, int | str] = {**inner, **squares_parameters(self.squares)}
        return found

    @cached_property
    def centred(self) -> Centred | None:
        """In halves of ticks: the middle of the grid may lie between two ticks."""
        tick = Fraction(2) ** self.grid.exponent
        return Centred(self.noise, self.weights, self.grid.ticks, 2, tick)

    @cached_property
    def noise_scale(self) -> float:
        """In the value's unit."""
        return in_unit(self.noise.scale, self.grid, self.weights)

    @cached_property
    def bias_bound(self) -> float:
        """`clipping.one_sided` at the margin."""
        return clipping.one_sided(self.moments, self.margin) * OUTWARD

    @cached_property
    def variance_bound(self) -> float:
        """Of clipped and rounded values, and noise."""
        return clipped_variance(self) * OUTWARD

    def _draw(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        found = clipped_ticks(self, values, source)
        means = ticks_means(self, found, source)
        if self.squares is None or self.centred is None:
            return [Drawn(value) for value in means]
        sums = self.centred.release(self.grid.halves(found), self.squares, source)
        about = Fraction(self.grid.low + self.grid.high, 2) * Fraction(2) ** self.grid.exponent
        return [
            Drawn(value, squares=Squares(about, total))
            for value, total in zip(means, sums, strict=True)
        ]


def noise_for(weights: Weights, ticks: int, epsilon: Fraction) -> NoisySum:
    """Noise for a weighed sum of values of some ticks, counted from their middle."""
    return NoisySum.fit(weights.largest * ticks, weights.total * (ticks // 2 + 1), epsilon)


def fitting(noise: NoisySum, weights: Weights, ticks: int) -> NoisySum:
    """The same noise with the reach and the largest sum that it must have."""
    most = weights.total * (ticks // 2 + 1)
    return replace(noise, sensitivity=weights.largest * ticks, most=most)


def clipped_ticks(part: Clipped, values: NDArray[np.float64], source: Noise) -> NDArray[np.int64]:
    """Clipped values as ticks from the middle of the grid, rounded at random."""
    words = source.bits(values.size, _ROUNDING).reshape(values.shape)
    return part.grid.whole(values, words)


def ticks_means(part: Clipped, found: NDArray[np.int64], source: Noise) -> list[Fraction]:
    """Means of ticks with noise, one a row, exactly."""
    grid, weights = part.grid, part.weights
    sums: list[int] = (found @ weights.number).tolist()
    tick = Fraction(2) ** grid.exponent
    drawn = part.noise.add(sums, source, _NOISE)
    return [(noisy / weights.total + grid.middle) * tick for noisy in drawn]


def clipped_means(part: Clipped, values: NDArray[np.float64], source: Noise) -> list[Fraction]:
    """Means of clipped values with noise, one a row, exactly."""
    return ticks_means(part, clipped_ticks(part, values, source), source)


def clipped_variance(part: Clipped) -> float:
    """Largest variance of `clipped_means`."""
    tick = 2.0**part.grid.exponent
    one = clipping.deviation(part.moments) ** 2 + tick**2 / 4
    noise = part.noise.variance * (tick / part.weights.total) ** 2
    return float(part.weights.squares) * one + noise


def clipping_parameters(grid: Grid, noise: NoisySum) -> Mapping[str, int | str]:
    """What a document keeps of a grid and its noise."""
    return {
        "tick_exponent": grid.exponent,
        "low": grid.low,
        "high": grid.high,
        "per_unit": noise.per_unit,
        "lattice_bits": noise.bits,
    }


def squares_parameters(squares: NoisySquares | None) -> Mapping[str, int | str]:
    """What a document keeps of squares: nothing if there are none."""
    if squares is None:
        return {}
    return {"square_step": squares.step, "square_bits": squares.bits}


def in_unit(scale: float, grid: Grid, weights: Weights) -> float:
    """Ticks of the sum as a change of the mean, in the value's unit."""
    return math.ldexp(scale, grid.exponent) / weights.total


def check_interval(interval: object) -> Interval:
    """A public interval [a, b] of finite numbers, a <= b.

    Raises:
        InputError: It is none.
    """
    if isinstance(interval, tuple | list) and len(interval) == _ENDS:
        numbers = [x for x in interval if checks.is_number(x)]
        if len(numbers) == len(interval) and _usable(*numbers):
            return float(numbers[0]) + 0.0, float(numbers[1]) + 0.0
    raise InputError(
        "an interval for the mean that is not usable",
        "two numbers within +-2^300, the lower first",
        "give for example interval=(0, 100)",
    )


def _usable(low: float, high: float) -> bool:
    return low <= high and max(abs(low), abs(high)) <= _FARTHEST
