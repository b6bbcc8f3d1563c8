"""The clipped mean and the symmetric mean, with the whole numbers that were chosen for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.certificate import Certificate
from shoal.means.guess import Places, exactly, ticks
from shoal.means.plan import OUTWARD, Facts, UnbiasedPlan
from shoal.means.plan_file import ClippedChoice, Drawn, Request, SymmetricChoice, check_interval
from shoal.means.sums import Grid, NoisySum, SumAboutCentre
from shoal.means.users import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise
from shoal.theory import clipping

_ROUNDING, _NOISE, _FINAL, _ORDER = 1, 2, 7, 9


@dataclass(frozen=True, eq=False)
class ClippedPlan(UnbiasedPlan):
    """Mean of values clipped to [a - t, b + t] with mu in [a, b], plus noise: (epsilon, 0).

    The bias is at most E(X - mu - t)+ (`clipping.one_sided`), the variance at most
    Q (sd^2 + tick^2/4) + noise, for clipping brings no two values further apart. One user moves the
    sum by at most its weight times the ticks of the grid. Paper 004, Proposition 3.0.1.
    """

    choice: ClippedChoice

    @cached_property
    def margin(self) -> float:
        """t: how far the mean is at least from where values are clipped."""
        (low, high), edges = check_interval(self.request.interval), self.choice.grid.edges
        return min(low - edges[0], edges[1] - high)

    @cached_property
    def facts(self) -> Facts:
        """Squares are of halves of ticks: the middle of the grid may lie between two ticks."""
        grid, noise, weights = self.choice.grid, self.choice.noise, self.weights
        if self.margin < 0:
            raise InputError("a mean outside of where values are clipped", "plan anew")
        noise.check(_most(weights.total, grid))
        tick, moments = 2.0**grid.exponent, self.request.moments
        one = clipping.deviation(moments) ** 2 + tick**2 / 4
        variance = float(weights.squares) * one + noise.variance * (tick / weights.total) ** 2
        off = Fraction(grid.low + grid.high - 2 * grid.middle, 2) * grid.tick
        return Facts(
            Budget(noise.loss(weights.largest * grid.ticks)),
            clipping.one_sided(moments, self.margin) * OUTWARD,
            variance * OUTWARD,
            SumAboutCentre(noise, weights, grid.ticks, 2, grid.tick, off),
        )

    def origin(self, drawn: Drawn) -> Fraction:
        """The grid's middle."""
        return self.choice.grid.middle * self.choice.grid.tick

    def runs(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """One draw a row."""
        grid, noise, squares = self.choice.grid, self.choice.noise, self.choice.squares
        words = source.bits(values.size, _ROUNDING).reshape(values.shape)
        found = grid.whole(values, words)
        steps = noise.add((found @ self.weights.number).tolist(), source, _NOISE)
        # Half ticks from halfway between the edges: -ticks to ticks.
        halves = 2 * found + (2 * grid.middle - grid.low - grid.high)
        beside = self.facts.last_sum.release(halves, squares, source)
        return [Drawn(*each) for each in zip(steps, beside, strict=True)]


def clipped_choice(request: Request, weights: Weights) -> ClippedChoice:
    """The least margin that keeps a bias budget, without squares."""
    (low, high), moments = check_interval(request.interval), request.moments
    t = clipping.margin(moments, (request.bias or 0.0) / OUTWARD) * OUTWARD
    # With mean and interval a point, and a generous budget, something is left to clip to.
    t = max(t, 2.0**-10 * clipping.deviation(moments))
    # Far from 0, or for a wide interval, the sums may be rounded inwards.
    grid = Grid.around(math.nextafter(low - t, -math.inf), math.nextafter(high + t, math.inf))
    most = _most(weights.total, grid)
    noise = NoisySum.fit(weights.largest * grid.ticks, most, request.epsilon)
    return ClippedChoice(grid=grid, noise=noise)


@dataclass(frozen=True, eq=False)
class SymmetricPlan(UnbiasedPlan):
    """A coarse guess, then a mean of other users clipped to guess -+ c: (epsilon, delta).

    The lightest users are in the coarse step and the middle step, the others in the last; a user
    loses the larger of the two. If the coarse step fails there is no estimate. The estimate is
    mirrored where values are, and whether there is one is not changed by that: so given that there
    is one it is unbiased for every symmetric distribution. After paper 004, Algorithm 2.
    """

    choice: SymmetricChoice
    supposes: ClassVar[str] = " if the distribution is symmetric and an estimate is released"

    @cached_property
    def last(self) -> Weights:
        """The weights of the last step."""
        return Weights(self.weights.number[self.choice.coarse.users :])

    @property
    def tick(self) -> Fraction:
        """Of the last step, in the value's unit."""
        return Fraction(2) ** (self.choice.coarse.exponent - self.choice.shift)

    @cached_property
    def facts(self) -> Facts:
        """The larger loss of each part; the variance given that there is an estimate."""
        choice, coarse, middle = self.choice, self.choice.coarse, self.choice.middle
        if not coarse.users < self.n:
            raise InputError("a symmetric mean without users in its last step", "plan anew")
        if middle is not None:
            middle.noise.check(middle.half * coarse.users)
        choice.noise.check(choice.half * self.last.total)
        first = coarse.loss + (middle.loss if middle else 0)
        last = choice.noise.loss(2 * choice.half * self.last.largest)
        squares, tick = float(self.last.squares), float(self.tick)
        certificate = Certificate(coarse, middle, self.request.moments, squares)
        noise = choice.noise.variance * (tick / self.last.total) ** 2
        return Facts(
            Budget(max(first, last), coarse.delta),
            0.0,
            certificate.variance(choice.half * tick, noise, tick) * OUTWARD,
            SumAboutCentre(choice.noise, self.last, choice.half, 1, self.tick),
            certificate.failure,
        )

    def origin(self, drawn: Drawn) -> Fraction:
        """The guess."""
        return exactly(drawn.guess or (0, 0), self.choice.coarse.exponent)

    def draw(self, values: NDArray[np.float64], source: Noise) -> Drawn:
        """Who is in which part is drawn anew among users of equal weight."""
        return super().draw(values[self.weights.shuffled(source, _ORDER)], source)

    def runs(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """One draw a row; the first users are in the coarse step."""
        choice, coarse = self.choice, self.choice.coarse
        first = Places.of(values[:, : coarse.users], coarse.exponent)
        guess = coarse.guess(first, source)
        if choice.middle is not None:
            guess = choice.middle.better(first, guess, source)
        second = Places.of(values[:, coarse.users :], coarse.exponent)
        found = ticks(second, guess, choice.shift, choice.half)
        steps = choice.noise.add((found @ self.last.number).tolist(), source, _FINAL)
        # Drawn whether or not there is a guess: the number of draws is the same.
        squares = self.facts.last_sum.release(found, choice.squares, source)
        guesses = zip(guess.bin.tolist(), guess.offset.tolist(), strict=True)
        drawn = map(Drawn, steps, squares, guesses)
        failed: list[bool] = guess.failed.tolist()
        return [Drawn(None) if fails else each for each, fails in zip(drawn, failed, strict=True)]


def _most(total: int, grid: Grid) -> int:
    """The largest weighted sum of ticks from the middle, for weights of such a total."""
    return total * (grid.ticks // 2 + 1)
