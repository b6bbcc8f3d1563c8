"""Chooses whole numbers for the clipped and the symmetric mean, and draws these means.

Both have the same methods; `best` chooses the parts of the smallest certified error, without
squares.
"""

import math
from fractions import Fraction
from typing import ClassVar, NamedTuple

from shoal.arrays import Floats
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.means.certificate import Certificate, best_steps
from shoal.means.guess import Coarse, Places, SumAboutGuess, exactly, ticks
from shoal.means.request import CLIPPED, SYMMETRIC, MeanDrawn, Request, check_interval
from shoal.means.sums import Grid, NoisySquares, SumAboutCentre
from shoal.means.users import UserWeights
from shoal.privacy.accounting import Step
from shoal.privacy.noise import Noise
from shoal.privacy.noisy import NoisySum
from shoal.theory import clipping

# Certificates are computed in floating point: this factor covers their rounding.
OUTWARD = 1 + 2.0**-40
# The draws of one release.
_ROUNDING = 1
_NOISE = 2
_FINAL = 7


class Facts(NamedTuple):
    """What follows from a choice: steps, largest bias and variance, and the last noisy sum.

    `failure` is the largest probability that no estimate is released. `bias` and `variance` are
    those of a released estimate, in the value's unit and its square.
    """

    steps: tuple[Step, ...]
    bias: float
    variance: float
    last_sum: SumAboutCentre
    failure: float = 0.0


class ClippedChoice(Model):
    """The noisy mean of values clipped to [a - t, b + t], with mu in [a, b]: (epsilon, 0)-DP."""

    grid: Grid
    noise: NoisySum
    squares: NoisySquares | None = None

    # The assumption of the bias besides the stated bounds, in words.
    supposes: ClassVar[str] = ""
    # Whether users of equal weight are shuffled first.
    mixes: ClassVar[bool] = False

    @classmethod
    def best(cls, request: Request, weights: UserWeights) -> "ClippedChoice":
        """Returns the choice with the smallest margin that keeps a bias budget."""
        low, high = check_interval(request.interval)
        moments = request.moments
        t = clipping.margin(moments, (request.bias or 0.0) / OUTWARD) * OUTWARD
        # If the interval is a point and the budget large, the clipped range still has a width.
        t = max(t, 2.0**-10 * clipping.deviation(moments))
        # Far from 0, or for a wide interval, sums may be rounded inwards.
        grid = Grid.around(math.nextafter(low - t, -math.inf), math.nextafter(high + t, math.inf))
        moved = weights.largest * grid.ticks
        most = weights.total * grid.most
        return cls(grid=grid, noise=NoisySum.fit(moved, most, request.epsilon))

    def margin(self, request: Request) -> float:
        """Returns t, the smallest distance of the mean from where values are clipped."""
        low, high = check_interval(request.interval)
        lowest, highest = self.grid.edges
        return min(low - lowest, highest - high)

    def facts(self, request: Request, weights: UserWeights) -> Facts:
        """Returns steps and errors; squares count half ticks, as the middle may lie between two."""
        grid = self.grid
        noise = self.noise
        margin = self.margin(request)
        if margin < 0:
            raise InputError("the mean may lie outside of the clipped range", "plan again")
        noise.check(weights.total * grid.most)
        tick = 2.0**grid.exponent
        moments = request.moments
        # Rounding at random to one of two ticks adds up to a quarter of a squared tick.
        value_variance = clipping.deviation(moments) ** 2 + tick**2 / 4
        # The middle of the grid is a tick; the middle of its range may be half a tick above it.
        off = Fraction(grid.low + grid.high - 2 * grid.middle, 2) * grid.tick
        last_sum = SumAboutCentre(
            noise, weights, reach=grid.ticks, parts=2, tick=grid.tick, off=off
        )
        variance = float(weights.squares) * value_variance + last_sum.variance
        bias = clipping.one_sided(moments, margin) * OUTWARD
        return Facts((last_sum.step,), bias, variance * OUTWARD, last_sum)

    def origin(self, _drawn: MeanDrawn) -> Fraction:
        """Returns the value from which the sum is counted, which is the grid's middle."""
        return self.grid.middle * self.grid.tick

    def runs(self, values: Floats, last_sum: SumAboutCentre, source: Noise) -> list[MeanDrawn]:
        """Returns a draw for each row of values, shape (runs, users), in the users' order."""
        words = source.bits(values.size, _ROUNDING).reshape(values.shape)
        ticks_from_middle = self.grid.whole(values, words)
        steps, squares = last_sum.release(ticks_from_middle, self.squares, source, _NOISE)
        return [MeanDrawn(*each) for each in zip(steps, squares, strict=True)]


class SymmetricChoice(Model):
    """A guess by the lightest users, and a mean of the others clipped about it (Algorithm 2)."""

    coarse: Coarse
    middle: SumAboutGuess | None
    last: SumAboutGuess
    squares: NoisySquares | None = None

    supposes: ClassVar[str] = " if the distribution is symmetric and an estimate is released"
    mixes: ClassVar[bool] = True

    @classmethod
    def best(cls, request: Request, weights: UserWeights) -> "SymmetricChoice":
        """Returns the parts with the smallest certified error, of a grid of first steps."""
        certificate, width = best_steps(request, weights)
        coarse = certificate.coarse
        others = UserWeights(weights.number[coarse.users :])
        last = SumAboutGuess.fit(
            coarse.exponent, width, request.epsilon, others.total, others.largest
        )
        return cls(coarse=coarse, middle=certificate.middle, last=last)

    def facts(self, request: Request, weights: UserWeights) -> Facts:
        """Returns steps and errors; the variance is that of a released estimate."""
        coarse = self.coarse
        middle = self.middle
        last = self.last
        if not coarse.users < len(weights.number):
            raise InputError("the last step of the symmetric mean has no users", "plan again")
        others = UserWeights(weights.number[coarse.users :])
        # Steps hold the moves of two kinds of users: those of the guess come first, then those of
        # the last sum.
        steps = coarse.steps((1, 0))
        last.noise.check(last.half * others.total)
        if middle is not None:
            middle.noise.check(middle.half * coarse.users)
            steps.append(middle.noise.step(2 * middle.half, 0))
        certificate = Certificate(coarse, middle, request.moments, float(others.squares))
        tick = last.tick(coarse)
        last_sum = SumAboutCentre(last.noise, others, reach=last.half, parts=1, tick=Fraction(tick))
        variance = certificate.variance(last.half * tick, last_sum.variance, tick) * OUTWARD
        steps.append(last_sum.noise.step(0, last_sum.moved))
        # Clipping about a symmetric guess has no bias.
        return Facts(tuple(steps), 0.0, variance, last_sum, certificate.failure)

    def origin(self, drawn: MeanDrawn) -> Fraction:
        """Returns the value from which the last sum is counted, which is the guess."""
        return exactly(drawn.guess or (0, 0), self.coarse.exponent)

    def runs(self, values: Floats, last_sum: SumAboutCentre, source: Noise) -> list[MeanDrawn]:
        """Returns a draw for each row of values; the first users are in the coarse step."""
        coarse = self.coarse
        last = self.last
        first_users = Places.of(values[:, : coarse.users], coarse.exponent)
        guess = coarse.guess(first_users, source)
        if self.middle is not None:
            guess = self.middle.better(first_users, guess, source)
        others = Places.of(values[:, coarse.users :], coarse.exponent)
        ticks_from_guess = ticks(others, guess, last.shift, last.half)
        # The last sum is drawn even without a guess, so that the number of draws is the same.
        steps, squares = last_sum.release(ticks_from_guess, self.squares, source, _FINAL)
        guesses = zip(guess.bin.tolist(), guess.offset.tolist(), strict=True)
        failed: list[bool] = guess.failed.tolist()
        drawn = []
        for each, fails in zip(map(MeanDrawn, steps, squares, guesses), failed, strict=True):
            drawn.append(MeanDrawn(None) if fails else each)
        return drawn


CHOICES: dict[str, type[ClippedChoice] | type[SymmetricChoice]] = {
    CLIPPED: ClippedChoice,
    SYMMETRIC: SymmetricChoice,
}
