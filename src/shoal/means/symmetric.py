"""The mean of a symmetric distribution, unbiased given that there is one, without any interval."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.certificate import Certificate
from shoal.means.coarse import Places, exactly
from shoal.means.middle import ticks
from shoal.means.plan import OUTWARD, UnbiasedPlan
from shoal.means.plan_file import Drawn, SymmetricChoice
from shoal.means.squares import SumAboutCentre
from shoal.means.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise

_FINAL, _ORDER = 7, 9


@dataclass(frozen=True, eq=False)
class SymmetricPlan(UnbiasedPlan):
    """A coarse guess, then a mean of other users clipped to guess -+ c: (epsilon, delta).

    The lightest users are in the coarse step and the middle step, the others in the last; a user
    loses the larger of the two. If the coarse step fails there is no estimate. The estimate is
    mirrored where values are, and whether there is one is not changed by that: so given that there
    is one it is unbiased for every symmetric distribution (docs/theory/unbiased.md#unbiased).
    Who is in which part is drawn anew among users of equal weight (`draw`).

    Source: after paper 004, Algorithm 2.
    """

    choice: SymmetricChoice
    supposes: ClassVar[str] = " if the distribution is symmetric and an estimate is released"

    def __post_init__(self) -> None:
        choice, first = self.choice, self.choice.coarse.users
        if not first < self.weights.users:
            raise InputError("a symmetric mean without users in its last step", "plan anew")
        if choice.middle is not None:
            choice.middle.noise.check(choice.middle.half * first)
        choice.noise.check(choice.half * self.last.total)
        super().__post_init__()

    @cached_property
    def last(self) -> Weights:
        """The weights of the last step."""
        return self.weights.after(self.choice.coarse.users)

    @cached_property
    def last_sum(self) -> SumAboutCentre:
        """The last step's sum, about the guess."""
        return SumAboutCentre(self.choice.noise, self.last, self.choice.half, 1, self._tick)

    @cached_property
    def exact_loss(self) -> Budget:
        """The larger of each part: the coarse and the middle step's sum, and the last step's."""
        choice = self.choice
        first = choice.coarse.loss + (choice.middle.loss if choice.middle else 0)
        last = choice.noise.loss(2 * choice.half * self.last.largest)
        return Budget(max(first, last), choice.coarse.delta)

    @property
    def half_width(self) -> float:
        """c, in the value's unit."""
        return self.choice.half * float(self._tick)

    @property
    def bias_bound(self) -> float:
        """None, for symmetric distributions."""
        return 0.0

    @cached_property
    def certificate(self) -> Certificate:
        """What the variance and the failures depend on, besides the last step."""
        last = float(self.last.squares)
        return Certificate(self.choice.coarse, self.choice.middle, self.request.moments, last)

    @property
    def failure_bound(self) -> float:
        """Largest probability that the coarse step fails, and there is no estimate."""
        return self.certificate.failure

    @cached_property
    def variance_bound(self) -> float:
        """`Certificate.variance` at c, with ticks and noise."""
        tick = float(self._tick)
        noise = self.choice.noise.variance * (tick / self.last.total) ** 2
        return self.certificate.variance(self.half_width, noise, tick) * OUTWARD

    @property
    def _tick(self) -> Fraction:
        return Fraction(2) ** (self.choice.coarse.exponent - self.choice.shift)

    def centre(self, drawn: Drawn) -> Fraction:
        """The guess."""
        return exactly(drawn.guess or (0, 0), self.choice.coarse.exponent)

    def value(self, drawn: Drawn) -> Fraction:
        """The guess and the mean of ticks from it."""
        moved = Fraction(drawn.steps or 0, self.choice.noise.per_unit * self.last.total)
        return self.centre(drawn) + moved * self._tick

    def draw(self, values: NDArray[np.float64], source: Noise) -> Drawn:
        """As `UnbiasedPlan.draw`, whatever the order of users of equal weight."""
        return super().draw(values[self.weights.shuffled(source, _ORDER)], source)

    def runs(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        """One draw a row; the first users are in the coarse step."""
        choice, users = self.choice, self.choice.coarse.users
        first = Places.of(values[:, :users], choice.coarse.exponent)
        guess = choice.coarse.guess(first, source)
        if choice.middle is not None:
            guess = choice.middle.better(first, guess, source)
        second = Places.of(values[:, users:], choice.coarse.exponent)
        found = ticks(second, guess, choice.shift, choice.half)
        steps = self.choice.noise.add((found @ self.last.number).tolist(), source, _FINAL)
        # Drawn whether or not there is a guess: the number of draws is the same.
        squares = self.last_sum.release(found, choice.squares, source)
        guesses = zip(guess.bin.tolist(), guess.offset.tolist(), strict=True)
        drawn = map(Drawn, steps, squares, guesses)
        failed: list[bool] = guess.failed.tolist()
        return [Drawn(None) if fails else each for each, fails in zip(drawn, failed, strict=True)]
