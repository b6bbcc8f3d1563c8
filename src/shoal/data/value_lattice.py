"""Turns real numbers in public bounds into whole numbers, the ticks of a lattice, to be added."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.errors import InputError

MOST_BITS = 24
# A tick has at least this many floating-point numbers: `Lattice.rounding` counts on it.
_SPACINGS = 2**10
# Fourth powers of values, and noise on them, must be numbers: what cannot be written down after a
# draw would not be charged, and whether it can would depend on the values.
_FARTHEST = 1e50
_NARROWEST = 1e-100
# Narrower bounds would make ticks per unit overflow.
_SMALLEST = 1e-280


@dataclass(frozen=True)
class Bounds:
    """The public range of a value, from `lo` to `hi`, in the value's unit.

    Raises:
        InputError: Not two numbers of at most 1e50 in absolute value with lo < hi, 1e-100 apart.

    Example:
        >>> Bounds(0, 65).width
        Fraction(65, 1)
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        for name, what in (("lo", "the lower bound"), ("hi", "the upper bound")):
            end = checks.number(getattr(self, name), what, least=-_FARTHEST, most=_FARTHEST)
            object.__setattr__(self, name, end)
        # Exactly: a width that underflows is none.
        if not self.lo < self.hi or self.width < _NARROWEST:
            raise InputError(
                f"bounds are ({self.lo:g}, {self.hi:g})",
                "give two finite numbers, the lower one first, at least 1e-100 apart",
            )

    @classmethod
    def of(cls, bounds: "Bounds | tuple[float, float]") -> "Bounds":
        """Returns bounds of a pair of numbers, in the value's unit; bounds as they are."""
        if isinstance(bounds, Bounds):
            return bounds
        return cls(*checks.items(bounds, "bounds", least=2, most=2))

    @property
    def width(self) -> Fraction:
        """The width U = hi - lo, exactly, in the value's unit."""
        return Fraction(self.hi) - Fraction(self.lo)


@dataclass(frozen=True)
class Lattice:
    """[lo, hi] cut into 2^bits ticks; a value is clipped and rounded to the nearest tick.

    A tick count t in 0..2^bits stands for the value lo + U t / 2^bits. One record moves a sum of
    ticks by at most 2^bits, so rounding is inside every sensitivity that uses the width U.
    """

    bounds: Bounds
    bits: int = 20

    def __post_init__(self) -> None:
        bits = checks.whole(self.bits, "tick bits", least=1, most=MOST_BITS, example=20)
        object.__setattr__(self, "bits", bits)
        spacing = math.ulp(max(abs(self.bounds.lo), abs(self.bounds.hi), _SMALLEST))
        if self.bounds.width / 2**self.bits < _SPACINGS * spacing:
            raise InputError(
                f"{self.bits} tick bits are too fine for floating-point numbers near the bounds "
                f"({self.bounds.lo:g}, {self.bounds.hi:g})",
                "widen the bounds or subtract a public constant from the values",
            )

    @property
    def rounding(self) -> Fraction:
        """Most that rounding to ticks moves a value, relative to the width.

        Half a tick, and 1/1024 of it for the floating-point subtraction of the lower bound.
        """
        return Fraction(1, 2 ** (self.bits + 1)) * (1 + Fraction(1, 2**10))

    @property
    def factor(self) -> float:
        """Ticks per unit of the value, as the floating-point number that every engine uses."""
        return float(2**self.bits / self.bounds.width)

    def ticks(self, values: Floats) -> Ints:
        """Returns ticks of finite values: floor((clip(x) - lo) * factor + 1/2), as engines do."""
        clipped = np.clip(values, self.bounds.lo, self.bounds.hi)
        return np.floor((clipped - self.bounds.lo) * self.factor + 0.5).astype(np.int64)

    def compared(self, threshold: float) -> float:
        """Returns the number that values are compared with, for a threshold.

        It is the threshold, or as much above it as single precision may have rounded it, up to half
        a tick: files of single precision have 0.1 as a number slightly above 0.1.
        """
        with np.errstate(over="ignore"):
            single = float(np.float32(threshold))
        if threshold < single <= threshold + 0.5 / self.factor:
            return single
        return threshold

    def value(self, numerator: int, denominator: int) -> float:
        """Returns the value at a share of the width above lo, correctly rounded to a float."""
        lo, (up, down) = Fraction(self.bounds.lo), self.bounds.width.as_integer_ratio()
        whole = lo.denominator * down * denominator
        # Dividing two integers rounds once, unlike floating-point arithmetic on the parts.
        return (lo.numerator * down * denominator + up * numerator * lo.denominator) / whole
