"""The clipped mean with Laplace noise: pure privacy, a bias that is bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.noisy_sum import Grid, NoisySum
from shoal.means.plan import OUTWARD, UnbiasedPlan
from shoal.means.plan_file import ClippedChoice, Drawn
from shoal.means.request import Interval, Request, check_interval
from shoal.means.squares import SumAboutCentre
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise
from shoal.theory import clipping

_ROUNDING, _NOISE = 1, 2


@dataclass(frozen=True, eq=False)
class ClippedPlan(UnbiasedPlan):
    """Mean of values clipped to [a - t, b + t] with mu in [a, b], plus noise: (epsilon, 0).

    The bias is at most E(X - mu - t)+ (`clipping.one_sided`), the variance at most
    Q (sd^2 + tick^2/4) + noise, for clipping brings no two values further apart. One user moves the
    sum by at most its weight times the ticks of the grid. Paper 004, Proposition 3.0.1.
    """

    choice: ClippedChoice

    def __post_init__(self) -> None:
        if self.margin < 0:
            raise InputError("a mean outside of where values are clipped", "plan anew")
        self.choice.noise.check(_most(self.weights.total, self.choice.grid))
        super().__post_init__()

    @classmethod
    def least(cls, request: Request, counts: NDArray[np.int64]) -> Self:
        """The least margin that keeps a bias budget, without squares."""
        (low, high), moments = check_interval(request.interval), request.moments
        t = clipping.margin(moments, (request.bias or 0.0) / OUTWARD) * OUTWARD
        # With mean and interval a point, and a generous budget, something is left to clip to.
        t = max(t, 2.0**-10 * clipping.deviation(moments))
        # Far from 0, or for a wide interval, the sums may be rounded inwards.
        grid = Grid.around(math.nextafter(low - t, -math.inf), math.nextafter(high + t, math.inf))
        weights = request.weights_of(counts)
        most = _most(weights.total, grid)
        noise = NoisySum.fit(weights.largest * grid.ticks, most, request.epsilon)
        return cls(request, counts, ClippedChoice(grid=grid, noise=noise))

    @cached_property
    def interval(self) -> Interval:
        """Holds the mean."""
        return check_interval(self.request.interval)

    @cached_property
    def margin(self) -> float:
        """t: how far the mean is at least from where values are clipped."""
        low, high = self.choice.grid.edges
        return min(self.interval[0] - low, high - self.interval[1])

    @cached_property
    def exact_loss(self) -> Budget:
        """Epsilon of the noise; delta is 0."""
        return Budget(self.choice.noise.loss(self.weights.largest * self.choice.grid.ticks))

    @cached_property
    def last_sum(self) -> SumAboutCentre:
        """In halves of ticks: the middle of the grid may lie between two ticks."""
        grid = self.choice.grid
        return SumAboutCentre(self.choice.noise, self.weights, grid.ticks, 2, grid.tick)

    @cached_property
    def bias_bound(self) -> float:
        """`clipping.one_sided` at the margin, in the value's unit."""
        return clipping.one_sided(self.request.moments, self.margin) * OUTWARD

    @cached_property
    def variance_bound(self) -> float:
        """Of clipped and rounded values, and noise, in the value's unit squared."""
        tick = 2.0**self.choice.grid.exponent
        one = clipping.deviation(self.request.moments) ** 2 + tick**2 / 4
        noise = self.choice.noise.variance * (tick / self.weights.total) ** 2
        return (float(self.weights.squares) * one + noise) * OUTWARD

    def centre(self, drawn: Drawn) -> Fraction:
        """Halfway between the edges."""
        return Fraction(self.choice.grid.low + self.choice.grid.high, 2) * self.choice.grid.tick

    def value(self, drawn: Drawn) -> Fraction:
        """The mean of ticks from the grid's middle."""
        moved = Fraction(drawn.steps or 0, self.choice.noise.per_unit * self.weights.total)
        return (moved + self.choice.grid.middle) * self.choice.grid.tick

    def runs(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """One draw a row."""
        grid, noise, squares = self.choice.grid, self.choice.noise, self.choice.squares
        words = source.bits(values.size, _ROUNDING).reshape(values.shape)
        ticks = grid.whole(values, words)
        steps = noise.add((ticks @ self.weights.number).tolist(), source, _NOISE)
        # Half ticks from halfway between the edges: -ticks to ticks.
        halves = 2 * ticks + (2 * grid.middle - grid.low - grid.high)
        beside = self.last_sum.release(halves, squares, source)
        return [Drawn(*each) for each in zip(steps, beside, strict=True)]


def _most(total: int, grid: Grid) -> int:
    """The largest weighted sum of ticks from the middle, for weights of such a total."""
    return total * (grid.ticks // 2 + 1)
