"""Squares that are released beside a sum: what the pair loses, and the interval that follows.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.verification.means.bounds import tick_of
from shoal.verification.means.facts import SYMMETRIC, Facts
from shoal.verification.recount.noise import normal_laplace, raised_by, student

_CAPACITY, _MOST_BITS = 2**60, 54
_CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Beside:
    """A noisy sum of whole numbers within -R..R, and their squares beside it.

    Attributes:
        weight: Of each user.
        reach: R.
        unit: Of the whole numbers, in the value's unit.
        price: What a unit of weight 1 costs in the sum.
        step: Of the squares, in squared units.
        scale: Of their noise, in steps.
    """

    weight: NDArray[np.int64]
    reach: int
    unit: Fraction
    price: Fraction
    step: int
    scale: int

    @classmethod
    def of(cls, facts: Facts) -> Beside:
        """From the parameters: ticks from a guess, or half ticks from the middle of a grid."""
        numbers, tick = facts.parameters, tick_of(facts)
        price = Fraction(numbers["per_unit"], 2 ** numbers["lattice_bits"])
        if facts.method == SYMMETRIC:
            reach = numbers["half"]
        else:
            reach, tick, price = numbers["high"] - numbers["low"], tick / 2, price / 2
        scale = 2 ** numbers["square_bits"]
        return cls(facts.final, reach, tick, price, numbers["square_step"], scale)

    @property
    def heavy(self) -> int:
        """Sum of squared weights."""
        number, many = np.unique(self.weight, return_counts=True)
        return sum(w * w * k for w, k in zip(number.tolist(), many.tolist(), strict=True))

    @property
    def total(self) -> int:
        """Sum of weights."""
        return int(self.weight.sum())

    def fits(self) -> bool:
        """Whether it can be drawn, and says something of two users at least."""
        most = -(-self.heavy * self.reach**2 // self.step) if self.step > 0 else _CAPACITY + 1
        return most <= _CAPACITY and 2 * self.heavy <= self.total**2

    def loss(self) -> Fraction:
        """What no user loses more than by the pair.

        A move by d units of a user of weight w costs w d p in the sum. The square moves by d (2R -
        d) at most, not at all from end to end: below that (w^2 d (2R - d)/s + 1)/t at most, with
        what rounding adds. Their sum is concave in d, with its top at R + p t s/(2 w).
        """
        reach, most = self.reach, Fraction(0)
        for weight in np.unique(self.weight).tolist():
            most = max(most, 2 * reach * weight * self.price)
            if reach > 0:
                top = reach + self.price * self.scale * self.step / (2 * weight)
                at = min(max(top, Fraction(1)), Fraction(2 * reach - 1))
                square = Fraction(weight * weight, self.step) * at * (2 * reach - at) + 1
                most = max(most, weight * at * self.price + square / self.scale)
        return most

    def on_lattice(self, squares: Fraction) -> bool:
        """Whether a sum of squares is a whole number of steps."""
        return (squares / (self.step * self.unit**2)).denominator == 1

    def half(self, moved: Fraction, squares: Fraction) -> float:
        """Half a normal interval without the bias, in the value's unit.

        Args:
            moved: The estimate less the place that squares are counted from.
            squares: The noisy sum of squares.
        """
        total, heavy = self.total, self.heavy
        one = self.one
        variance = (squares - heavy * (moved**2 - 2 * one**2)) / (total**2 - heavy)
        return self._wide(float(variance / one**2), float(moved / one))

    def expected(self, deviation: float) -> float:
        """The same for values of a known standard deviation about their mean."""
        share = Fraction(self.heavy, self.total**2)
        return self._wide(float(share * (Fraction(deviation) / self.one) ** 2), 0.0)

    @property
    def one(self) -> Fraction:
        """Scale of the noise on the mean, in the value's unit."""
        return self.unit / self.price / self.total

    def _wide(self, variance: float, moved: float) -> float:
        """From a variance and a mean in units of the noise's scale."""
        free = self.total**2 - self.heavy
        part = self.heavy / free
        loose = float(Fraction(self.step * self.scale) * (self.unit / self.one) ** 2 / free)
        # Of m^2: the noise is 2 m Z, and Z^2 less its mean, whose variance is 20 b^4.
        doubt = math.sqrt(loose**2 + (2 * part * moved) ** 2 + 10 * part**2)
        few = (student(1 / part, _CONFIDENCE) / student(math.inf, _CONFIDENCE)) ** 2
        told = few * (max(variance, 0.0) + raised_by(doubt) * doubt)
        return float(self.one) * normal_laplace(_CONFIDENCE, told, 2.0, 1.0)


def fits(facts: Facts) -> bool:
    """Whether squares can be released as the plan says; without them they can."""
    if not facts.normal:
        return True
    numbers = facts.parameters
    sound = numbers["square_step"] > 0 and 0 <= numbers["square_bits"] <= _MOST_BITS
    return sound and Beside.of(facts).fits()
