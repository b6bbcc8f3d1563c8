"""Normal intervals of means: how values spread, from a noisy sum and noisy squares beside it.

Everything is in units of b1, the scale of the noise on the mean, so that no unit of the values is
too large or too small.

Source: docs/theory/unbiased.md#a-normal-interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shoal import checks
from shoal.errors import InputError
from shoal.intervals import half_width
from shoal.means.estimators.squares import Centred, NoisySquares

NORMAL, CERTIFIED = "normal", "certified"
# How intervals may be made.
INTERVALS = (NORMAL, CERTIFIED)
_LEAST, _MOST = 0.8, 0.995


@dataclass(frozen=True)
class Squares:
    """What is released beside a mean: the sum of w^2 (x - g)^2 with noise. Public.

    Attributes:
        about: g, in the value's unit.
        total: The noisy sum, in its square; noise may make it negative.
    """

    about: Fraction
    total: Fraction


@dataclass(frozen=True)
class Spread:
    """What is known of a mean's sampling variance.

    Attributes:
        unit: b1, scale of the noise on the mean, in the value's unit.
        variance: V^, in b1^2; noise may make it negative.
        loose: b2, scale of its noise, in b1^2.
        degrees: Of freedom: as many as so many equal users have.
    """

    unit: Fraction
    variance: float
    loose: float
    degrees: float

    @classmethod
    def told(
        cls, centred: Centred, squares: NoisySquares, value: Fraction, found: Squares
    ) -> Spread:
        """V^ = (S/W^2 - Q (m^2 - 2 b1^2))/(1 - Q), m the released mean about g, Q = sum w^2/W^2.

        For equal weights that is (S/n - m^2 + 2 b1^2)/(n - 1).

        Args:
            centred: The sum.
            squares: How the squares beside it were released.
            value: The released mean, exactly.
            found: The released squares.
        """
        weights, unit = centred.weights, centred.scale
        share = weights.squares
        mean = (value - found.about) / unit
        total = found.total / (weights.total * unit) ** 2
        variance = (total - share * (mean**2 - 2)) / (1 - share)
        return cls.of(centred, squares, float(variance), float(mean))

    @classmethod
    def of(
        cls, centred: Centred, squares: NoisySquares, variance: float, mean: float = 0.0
    ) -> Spread:
        """The same for a variance that is known, in b1^2, and a mean about g, in b1.

        The noise of m^2 - 2 b1^2 is 2 m Z and Z^2 - 2 b1^2: variances of 8 m^2 b1^2 and 20 b1^4,
        as those of Laplace variables of scales 2 m b1 and sqrt(10) b1^2.
        """
        share = centred.weights.squares
        part = float(share / (1 - share))
        own = float(centred.loose(squares) / (1 - share))
        loose = math.hypot(own, 2 * part * mean, math.sqrt(10) * part)
        return cls(centred.scale, variance, loose, float(1 / share - 1))

    def half(self, confidence: float) -> float:
        """Half a normal interval, in the value's unit: `noisy_variance.half_width`.

        Args:
            confidence: From 0.8 to 0.995.
        """
        found = half_width(confidence, self.variance, 2.0, 1.0, self.loose, self.degrees)
        return found * float(self.unit)


def check_level(confidence: object) -> float:
    """A confidence for which it is known how much wider a noisy variance makes intervals.

    Raises:
        InputError: Another.
    """
    number = checks.check_confidence(confidence)
    if not _LEAST <= number <= _MOST:
        raise InputError(
            f"a normal interval of confidence {number:g}",
            f"from {_LEAST} to {_MOST}",
            'ask for one of these, or plan with interval_by="certified"',
        )
    return number
