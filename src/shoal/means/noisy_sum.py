"""Values on a grid of ticks, and one weighted sum of them with discrete Laplace noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.privacy.noise import Noise

CAPACITY, MOST_BITS, MOST_EXPONENT = 60, 54, 400
TICK_BITS = 22
_FINE, _MOST_EDGE = 20, 2**52

Positive = Annotated[int, Field(ge=1, le=2**CAPACITY)]
Bits = Annotated[int, Field(ge=0, le=MOST_BITS)]
Exponent = Annotated[int, Field(ge=-MOST_EXPONENT, le=MOST_EXPONENT)]
_Edge = Annotated[int, Field(ge=-_MOST_EDGE, le=_MOST_EDGE)]


class Grid(Model):
    """The interval [low, high] * 2^exponent, in the value's unit, cut into ticks of 2^exponent.

    Rounding at random keeps the expectation, at most 2^-64 of a tick off, and adds a variance of at
    most a quarter of a tick's square.
    """

    exponent: Exponent
    low: _Edge
    high: _Edge

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not 0 < self.ticks <= 2**TICK_BITS + 2:
            raise _bad_interval()
        return self

    @classmethod
    def around(cls, low: float, high: float) -> Grid:
        """The least grid of 2^21 to 2^22 + 2 ticks that holds an interval."""
        width = high - low
        if not 2.0 ** (TICK_BITS - MOST_EXPONENT) < width < 2.0**MOST_EXPONENT:
            raise _bad_interval()
        exponent = math.frexp(width)[1] - TICK_BITS
        ends = math.ldexp(low, -exponent), math.ldexp(high, -exponent)
        if max(map(abs, ends)) > _MOST_EDGE - 1:
            raise _bad_interval()
        return cls(exponent=exponent, low=math.floor(ends[0]), high=math.ceil(ends[1]))

    @property
    def ticks(self) -> int:
        """The most that one value moves."""
        return self.high - self.low

    @property
    def middle(self) -> int:
        """The tick from which ticks are counted, so that sums stay small."""
        return (self.low + self.high) // 2

    @property
    def tick(self) -> Fraction:
        """In the value's unit."""
        return Fraction(2) ** self.exponent

    @property
    def edges(self) -> tuple[float, float]:
        """The interval in the value's unit."""
        return math.ldexp(self.low, self.exponent), math.ldexp(self.high, self.exponent)

    def whole(self, values: NDArray[np.float64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Clipped values as ticks from the middle, rounded away from 0 where words are below."""
        places = np.ldexp(np.clip(values, *self.edges), -self.exponent)
        # Towards zero, so that the rest of a tiny negative number is not rounded to 1.
        whole = np.trunc(places)
        rest = np.abs(places - whole)
        away = words < (rest * 2.0**64).astype(np.uint64)
        ticks = whole.astype(np.int64) + np.where(away, np.sign(places), 0).astype(np.int64)
        return np.asarray(ticks - self.middle)


class NoisySum(Model):
    """How a sum of whole numbers is released: steps that a unit is worth, and 2^bits, the scale.

    Whoever moves the sum by at most D units loses D * per_unit / 2^bits, exactly.
    """

    per_unit: Positive
    bits: Bits

    @classmethod
    def fit(cls, sensitivity: int, most: int, epsilon: Fraction) -> NoisySum:
        """The least noise of a loss of at most epsilon, for sums that are no larger than `most`."""
        fine = min(_FINE, CAPACITY - 1 - most.bit_length())
        ratio = Fraction(sensitivity) / epsilon
        bits = max(0, fine + math.ceil(math.log2(ratio)))
        if fine < 1 or bits > MOST_BITS:
            raise unfit()
        return cls(per_unit=min(int(2**bits / ratio), 2**CAPACITY // most), bits=bits)

    def check(self, most: int) -> None:
        """Refuses sums that would not fit the sampler."""
        if most * self.per_unit > 2**CAPACITY:
            raise unfit()

    def loss(self, sensitivity: int) -> Fraction:
        """The exact privacy loss of a user who moves the sum by at most so many units."""
        return Fraction(sensitivity * self.per_unit, 2**self.bits)

    @property
    def scale(self) -> float:
        """Of the noise, in units."""
        return 2.0**self.bits / self.per_unit

    @property
    def variance(self) -> float:
        """Of the noise, in units^2: 1/(2 sinh^2(1/(2t))) steps^2 at a scale of t steps."""
        return 1 / (2 * math.sinh(2.0 ** -(self.bits + 1)) ** 2) / float(self.per_unit) ** 2

    def add(self, sums: list[int], source: Noise, draw: int) -> list[int]:
        """Sums with noise, in steps; `draw` tells the vectors of one release apart."""
        return add_steps([x * self.per_unit for x in sums], self.bits, source, draw)


def add_steps(steps: list[int], bits: int, source: Noise, draw: int) -> list[int]:
    """Adds noise of scale 2^bits to whole numbers of either sign."""
    # The sampler adds to numbers from 0 on.
    middle = 2**CAPACITY
    return [x - middle for x in source.add_laplace([x + middle for x in steps], bits, draw)]


def unfit() -> InputError:
    """The error for noise that does not fit the lattice."""
    return InputError(
        "noise that does not fit the lattice of 2^61 steps",
        "ask for a larger epsilon, or give fewer or more even weights",
    )


def _bad_interval() -> InputError:
    return InputError(
        "an interval that cannot be cut into ticks",
        "give moderate numbers, the width above 2^-30 of the larger edge: interval=(0, 100)",
    )
