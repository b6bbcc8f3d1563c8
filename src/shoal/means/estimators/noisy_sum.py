"""One weighed sum of ticks with discrete Laplace noise, whole steps throughout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shoal.errors import InputError
from shoal.privacy.noise import Noise

_CAPACITY = 60
_FINE = 20
MOST_BITS = 54


def laplace_variance(scale: float) -> float:
    """Variance of discrete Laplace noise: 1/(2 sinh^2(1/(2t))), in steps^2; just below 2 t^2.

    Args:
        scale: t > 0, in steps.

    Example:
        >>> round(laplace_variance(1024.0) / 1024**2, 6)
        2.0
    """
    return 1 / (2 * math.sinh(1 / (2 * scale)) ** 2)


@dataclass(frozen=True)
class NoisySum:
    """A whole number that one user moves by at most `sensitivity`, released with noise.

    Every unit is worth a whole number of steps, so that nothing is rounded: a neighbour's sum is at
    most reach * per_unit steps away, and discrete Laplace noise of scale 2^bits steps loses
    epsilon = reach * per_unit / 2^bits, exactly. The noise is symmetric about 0.

    Attributes:
        sensitivity: Most units that one user moves the sum.
        most: No sum is larger in absolute value.
        per_unit: Steps of noise that one unit is worth.
        bits: j, the noise has the scale of 2^j steps.

    Raises:
        InputError: The numbers do not fit 2^61 steps.

    Example:
        >>> found = NoisySum.fit(sensitivity=1000, most=10**6, epsilon=Fraction(1, 10))
        >>> float(found.loss), float(round(found.scale))
        (0.0999999..., 10000.0)
    """

    sensitivity: int
    most: int
    per_unit: int
    bits: int

    def __post_init__(self) -> None:
        numbers = (self.sensitivity, self.most, self.per_unit, self.bits)
        sound = (
            all(type(x) is int and x >= 0 for x in numbers)
            and self.sensitivity > 0
            and self.per_unit > 0
            and self.most * self.per_unit <= 2**_CAPACITY
            and self.bits <= MOST_BITS
        )
        if not sound:
            raise _unfit()

    @classmethod
    def fit(cls, sensitivity: int, most: int, epsilon: Fraction) -> NoisySum:
        """The least noise of a loss of at most epsilon: a millionth below, a 60th at the largest.

        Raises:
            InputError: epsilon is too small for the lattice.
        """
        fine = min(_FINE, _CAPACITY - 1 - most.bit_length())
        ratio = Fraction(sensitivity) / epsilon
        bits = max(0, fine + math.ceil(_log2(ratio)))
        if fine < 1 or bits > MOST_BITS:
            raise _unfit()
        per_unit = min(int(2**bits / ratio), 2**_CAPACITY // most)
        return cls(sensitivity, most, per_unit, bits)

    @property
    def loss(self) -> Fraction:
        """The exact privacy loss."""
        return Fraction(self.sensitivity * self.per_unit, 2**self.bits)

    @property
    def scale(self) -> float:
        """Of the noise, in units."""
        return 2.0**self.bits / self.per_unit

    @property
    def variance(self) -> float:
        """Of the noise, in units^2."""
        return laplace_variance(2.0**self.bits) / float(self.per_unit) ** 2

    def add(self, sums: list[int], source: Noise, draw: int) -> list[Fraction]:
        """Sums with noise, in units.

        Args:
            sums: One for each run of the mechanism; a release is one run. Private.
            source: Of randomness.
            draw: Tells the vectors of one release apart.
        """
        # The sampler adds to numbers from 0 on.
        middle = 2**_CAPACITY
        drawn = source.add_laplace([x * self.per_unit + middle for x in sums], self.bits, draw)
        return [Fraction(x - middle, self.per_unit) for x in drawn]


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)


def _unfit() -> InputError:
    return InputError(
        "noise that does not fit the lattice of 2^61 steps",
        "a moderate epsilon and weights of moderate size",
        "ask for a larger epsilon, or fewer or more even weights",
    )
