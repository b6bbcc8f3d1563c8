"""Recounts what discrete Laplace and Gaussian noise costs, and intervals of noisy estimates."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from scipy.optimize import brentq
from scipy.special import erf, erfcinv, ndtri, stdtrit

mp: Any = mpmath.mp
# Logarithms of b2/b1^2: b2 is the noise scale of a variance, b1 the noise scale of an estimate.
_KNOTS = np.log((0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0))
# For each of these, the part of b2 by which the variance is raised for intervals of 95%.
_RAISED = (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80)


class Law(NamedTuple):
    """A law of noise, whose numbers are in scales.

    Attributes:
        power: The moves of a user add up in this power.
        rounding: The lattice steps that rounding both moments adds to what a user moves them by.
        variance: Its variance.
        square: Mean of |X^2 - E X^2|.
        size: Mean absolute noise, from the bits of the lattice.
        quantile: What noise exceeds with a probability, on one side or the other, from the bits.
        joint_rate: By how much all records together move both moments, from the scales of both.
    """

    power: int
    rounding: int
    variance: int
    square: float
    size: Callable[[int], float]
    quantile: Callable[[int, float], float]
    joint_rate: Callable[[Fraction, Fraction], Fraction]


def gaussian_delta(epsilon: Fraction, rho: Fraction, numbers: int, bits: int) -> Fraction:
    """Returns delta of Gaussian noise, upwards (docs/theory/privacy.md#delta-on-the-lattice)."""
    with mp.workdps(60):
        e, r = (mp.mpf(each.numerator) / each.denominator for each in (epsilon, rho))
        root = 2 * mp.sqrt(r)
        c = 1 / (24 * mp.mpf(4) ** bits)
        # `smooth` is Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m) with m = sqrt(2 rho); whole numbers
        # add the rest.
        smooth = (mp.erfc((e - r) / root) - mp.exp(e) * mp.erfc((e + r) / root)) / 2
        lattice = (1 - 2 * c) ** (-mp.mpf(numbers) / 2) * mp.exp(2 * r * c / (1 - 2 * c)) - 1
        return _up(smooth + numbers * c + lattice)


def laplace_tail(steps: int, bits: int) -> Fraction:
    """Returns P[Z >= steps] of discrete Laplace noise Z, rounded upwards."""
    with mp.workdps(60):
        scale = mp.mpf(2) ** bits
        return _up(mp.exp(-steps / scale) / (1 + mp.exp(-1 / scale)))


def log_up(ratio: Fraction) -> Fraction:
    """Returns ln(ratio), rounded upwards; ratio - 1 if that is tiny."""
    if ratio - 1 < Fraction(1, 10**20):
        return ratio - 1
    with mp.workdps(80):
        return _up(mp.log(mp.mpf(ratio.numerator) / ratio.denominator))


def _up(number: Any) -> Fraction:
    """Returns a number of mpmath as a fraction, rounded upwards."""
    return Fraction(str(number * (1 + mp.mpf(10) ** -40)))


def laplace_variance(bits: int) -> float:
    """Returns the variance of discrete Laplace noise in squared scales."""
    return 2 * math.exp(-(2.0**-bits)) * (2.0**-bits / math.expm1(-(2.0**-bits))) ** 2


def _laplace_size(bits: int) -> float:
    """Returns mean absolute Laplace noise, of a lattice of so many bits."""
    step = 2.0**-bits
    return step / math.sinh(step)


def _laplace_quantile(bits: int, miss: float) -> float:
    """Returns what Laplace noise exceeds with this probability, in whole steps."""
    scale = 2.0**bits
    return math.floor(scale * math.log(2 / miss / (1 + math.exp(-1 / scale)))) / scale


def _laplace_rate(mean: Fraction, square: Fraction) -> Fraction:
    """Returns the sum of what all records move both moments by, at the worst distance.

    If all records move the mean by a distance, they move the squares by distance (1 - distance).
    """
    distance = min(Fraction(1), (1 + square / mean) / 2)
    return distance / mean + distance * (1 - distance) / square


def _gaussian_size(bits: int) -> float:
    """Returns mean absolute Gaussian noise, which is the same on every lattice."""
    return math.sqrt(2 / math.pi)


def _gaussian_quantile(bits: int, miss: float) -> float:
    """Returns what Gaussian noise exceeds with this probability, in whole steps."""
    scale = 2.0**bits
    allowed = miss * (1 - 1 / (24 * scale * scale))
    return math.ceil(float(erfcinv(allowed)) * scale * math.sqrt(2) - 0.5) / scale


def _gaussian_rate(mean: Fraction, square: Fraction) -> Fraction:
    """Returns the root of the squares of what all records move both moments by."""
    ratio = float(square / mean) ** 2
    if ratio >= 1 / 11:
        # The whole distance is the worst, at which squares do not move.
        return 1 / mean
    distance = Fraction((3 - math.sqrt(1 - 8 * ratio)) / 4)
    of_square = distance * (1 - distance) * mean / square
    both = float(max(Fraction(1), distance**2 + of_square**2))
    # A floating-point root may be rounded downwards.
    return Fraction(math.sqrt(both)) * (1 + Fraction(1, 2**50)) / mean


LAPLACE = Law(
    power=1,
    rounding=1,
    variance=2,
    square=4 * (1 + math.sqrt(2)) * math.exp(-math.sqrt(2)),
    size=_laplace_size,
    quantile=_laplace_quantile,
    joint_rate=_laplace_rate,
)
GAUSSIAN = Law(
    power=2,
    rounding=2,
    variance=1,
    square=4 * math.exp(-0.5) / math.sqrt(2 * math.pi),
    size=_gaussian_size,
    quantile=_gaussian_quantile,
    joint_rate=_gaussian_rate,
)
LAWS = {"discrete laplace": LAPLACE, "discrete gaussian": GAUSSIAN}


def student(degrees: float, confidence: float) -> float:
    """Returns the quantile of a t interval, or of a normal one for very many degrees."""
    chance = (1 + confidence) / 2
    return float(ndtri(chance) if degrees > 1e9 else stdtrit(degrees, chance))


def half_width(
    confidence: float, variance: float, spread: float, degrees: float, laplace: float, terms: float
) -> float:
    """Returns half an interval for a sampling variance, with Laplace noise of variance `laplace`.

    That noise is a sum of `terms` Laplace variables. The sampling variance itself has noise of the
    scale `spread`, and is raised by a part of it (docs/theory/experiments.md#an-honest-interval).
    """
    raised = np.interp(math.log(max(2 * spread / laplace, 0.03)), _KNOTS, _RAISED) * spread
    # A normal error of this variance has the half width of Student's with these degrees.
    wider = student(degrees, confidence) / student(math.inf, confidence)
    normal = wider**2 * (max(variance, 0.0) + float(raised))
    # Laplace noise is normal with a gamma variance: its coverage is a mean over the logarithm of
    # that variance.
    far = 10 / math.sqrt(terms)
    logs = np.linspace(-far - 45 / terms, far + math.log1p(45 / terms), 4001)
    chance = np.exp(terms * (logs - np.expm1(logs)))
    # The root of 2 makes a normal quantile of `erf`.
    deviation = np.sqrt(2 * (normal + laplace * np.exp(logs)) / (normal + laplace))

    def excess(half: float) -> float:
        """Returns how much more than the confidence an interval of this half width covers."""
        return float(chance @ erf(half / deviation) / chance.sum()) - confidence

    half = float(brentq(excess, 0.0, 64.0, xtol=1e-13, rtol=1e-13))
    return math.sqrt(normal + laplace) * half
