"""Discrete Laplace and Gaussian noise: what it costs, and how far it reaches."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
from scipy.special import erfcinv

mp: Any = mpmath.mp
# Mean of |X^2 - E X^2| of Laplace and of normal variables of scale 1.
LAPLACE_SQUARE = 4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2))
GAUSSIAN_SQUARE = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi)


def gaussian_delta(epsilon: Fraction, rho: Fraction, numbers: int, bits: int) -> Fraction:
    """Delta of discrete Gaussian noise, rounded upwards (docs/theory/gaussian.md#on-the-lattice).

    Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m) with m = sqrt(2 rho), and what whole numbers add.
    """
    with mp.workdps(60):
        e, r = (mp.mpf(each.numerator) / each.denominator for each in (epsilon, rho))
        root, c = 2 * mp.sqrt(r), 1 / (24 * mp.mpf(4) ** bits)
        smooth = (mp.erfc((e - r) / root) - mp.exp(e) * mp.erfc((e + r) / root)) / 2
        lattice = (1 - 2 * c) ** (-mp.mpf(numbers) / 2) * mp.exp(2 * r * c / (1 - 2 * c)) - 1
        return _up(smooth + numbers * c + lattice)


def laplace_tail(steps: int, bits: int) -> Fraction:
    """P[Z >= steps] of discrete Laplace noise, rounded upwards."""
    with mp.workdps(60):
        scale = mp.mpf(2) ** bits
        return _up(mp.exp(-steps / scale) / (1 + mp.exp(-1 / scale)))


def log_up(ratio: Fraction) -> Fraction:
    """Not below ln(ratio); ratio - 1 where that is tiny."""
    if ratio - 1 < Fraction(1, 10**20):
        return ratio - 1
    with mp.workdps(80):
        return _up(mp.log(mp.mpf(ratio.numerator) / ratio.denominator))


def _up(number: Any) -> Fraction:
    return Fraction(str(number * (1 + mp.mpf(10) ** -40)))


def quantile(bits: int, miss: float, *, gaussian: bool) -> float:
    """Noise in scales that is exceeded with this probability at most, either way."""
    scale = 2.0**bits
    if gaussian:
        allowed = miss * (1 - 1 / (24 * scale * scale))
        return math.ceil(float(erfcinv(allowed)) * scale * math.sqrt(2) - 0.5) / scale
    return math.floor(scale * math.log(2 / miss / (1 + math.exp(-1 / scale)))) / scale


def mean_absolute(bits: int, *, gaussian: bool) -> float:
    """Mean of |noise| in scales."""
    return math.sqrt(2 / math.pi) if gaussian else 2.0**-bits / math.sinh(2.0**-bits)


def laplace_variance(bits: int) -> float:
    """Variance of discrete Laplace noise in squared scales."""
    return 2 * math.exp(-(2.0**-bits)) * (2.0**-bits / math.expm1(-(2.0**-bits))) ** 2
