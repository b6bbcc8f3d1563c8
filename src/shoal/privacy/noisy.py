"""Adds discrete Laplace noise to sums of whole numbers, each unit of which is worth some steps."""

import math
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field

from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.privacy.accounting import NoisyVector, account
from shoal.privacy.noise import Noise

# Sums have at most 2^60 steps, and noise a scale of at most 2^54.
CAPACITY = 60
MOST_BITS = 54
# Rounding steps down costs at most a part in 2^20 of the loss.
_FINE = 20

Positive = Annotated[int, Field(ge=1, le=2**CAPACITY)]
Bits = Annotated[int, Field(ge=0, le=MOST_BITS)]


class NoisySum(Model):
    """The noise of sums of whole numbers: its scale is 2^bits steps, and a unit is `per_unit`."""

    per_unit: Positive
    bits: Bits

    @classmethod
    def fit(cls, sensitivity: int, most: int, epsilon: Fraction) -> "NoisySum":
        """Returns the least noise that costs at most epsilon, for sums no larger than `most`."""
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

    def step(self, *moves: int) -> NoisyVector:
        """Returns the accountant's step; each user moves the sums by at most so many units."""
        return NoisyVector("laplace", self.bits, np.array(moves, dtype=object) * self.per_unit)

    def loss(self, moves: int) -> Fraction:
        """Returns the exact privacy loss of a user who moves the sums by at most so many units."""
        return account([self.step(moves)]).epsilon

    @property
    def scale(self) -> float:
        """The scale of the noise, in units."""
        return 2.0**self.bits / self.per_unit

    @property
    def variance(self) -> float:
        """The variance of the noise, in squared units.

        At a scale of t steps it is 1/(2 sinh^2(1/(2t))) squared steps.
        """
        return 1 / (2 * math.sinh(2.0 ** -(self.bits + 1)) ** 2) / float(self.per_unit) ** 2

    def add(self, sums: list[int], source: Noise, draw: int = 0) -> list[int]:
        """Returns sums with noise, in steps; `draw` tells the vectors of one release apart."""
        return source.add_laplace([x * self.per_unit for x in sums], self.bits, draw)


def unfit() -> InputError:
    """The error for noise that does not fit the lattice."""
    return InputError(
        "noise or squares do not fit the lattice of 2^61 steps at this privacy loss",
        "ask for a larger epsilon or certified intervals, or give fewer or more even weights",
    )
