"""Student's t: quantiles of intervals, power, and the least detectable effect."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from shoal import checks
from shoal.checks import check_confidence
from shoal.errors import InputError

# Beyond it a normal variable has 1e-18 of its mass; nodes of each piece of an integral.
_REACH, _NODES = 9.0, 60
_FAR = 1e9
# Below, quantiles are beyond floating-point numbers.
_LEAST_DEGREES = 0.1
# Beyond, t and the normal distribution differ by less than rounding.
_NORMAL_DEGREES = 1e12
# A confidence or power nearer to 1 leaves nothing of a difference from 1.
_MOST_POWER = 1 - 1e-12


def quantile(degrees: float, confidence: float) -> float:
    """Between -+ this a t variable lies with the given probability; a normal one if infinite.

    Args:
        degrees: Degrees of freedom, above 0, or infinite.
        confidence: Between 0 and 1.

    Raises:
        InputError: Numbers outside their ranges.

    Example:
        >>> round(quantile(math.inf, 0.95), 4), round(quantile(10.0, 0.95), 4)
        (1.96, 2.2281)
    """
    from scipy.special import ndtri, stdtrit

    confidence, degrees = check_confidence(confidence), _degrees(degrees)
    if math.isinf(degrees):
        return -float(ndtri((1 - confidence) / 2))
    return -float(stdtrit(degrees, (1 - confidence) / 2))


def power(
    effect: float,
    standard_error: float,
    confidence: float = 0.95,
    degrees_of_freedom: float = math.inf,
) -> float:
    """The probability that the interval leaves out 0 when the truth is `effect`.

    P(|T| > t) for a noncentral t (normal, if the degrees are infinite) of centre
    effect/standard_error; 1 - confidence when the effect is 0.

    Source: docs/theory/inference.md#degrees-of-freedom.

    Args:
        effect: In the outcome's unit, of either sign.
        standard_error: Above 0, in the outcome's unit.
        confidence: Of the interval.
        degrees_of_freedom: Of the interval's quantile.

    Returns:
        A probability.

    Raises:
        InputError: Numbers outside their ranges.

    Example:
        >>> round(power(2.8, 1.0), 2), round(power(2.8, 1.0, degrees_of_freedom=10.0), 2)
        (0.8, 0.71)
    """
    error, size = _error(standard_error), abs(checks.number(effect, "effect", example=0.5))
    degrees = _degrees(degrees_of_freedom)
    limit = quantile(degrees, confidence)
    # Beyond this many standard errors the power is 1 to the last place.
    centre = _FAR if size > _FAR * error else size / error
    return _power(centre, limit, degrees)


def detectable(
    standard_error: float,
    power: float = 0.8,
    confidence: float = 0.95,
    degrees_of_freedom: float = math.inf,
) -> float:
    """The least effect whose interval leaves out 0 with a given probability; inverts `power`.

    Source: docs/theory/inference.md#degrees-of-freedom.

    Args:
        standard_error: Above 0, in the outcome's unit.
        power: Probability wanted, above 1 - confidence and below 1.
        confidence: Of the interval.
        degrees_of_freedom: Of the interval's quantile.

    Returns:
        The effect, above 0, in the outcome's unit.

    Raises:
        InputError: Numbers outside their ranges, or a power that no effect at all has.

    Example:
        >>> round(detectable(1.0), 2), round(detectable(1.0, degrees_of_freedom=10.0), 2)
        (2.8, 3.11)
    """
    from scipy.optimize import brentq

    error, wanted = _error(standard_error), check_power(power)
    degrees, alone = _degrees(degrees_of_freedom), 1 - check_confidence(confidence)
    limit = quantile(degrees, confidence)
    if wanted <= alone:
        raise InputError(
            f"a power of {wanted:.6g}",
            f"above {alone:.6g}, which an effect of 0 has",
            "give for example 0.8",
        )

    def short(centre: float) -> float:
        return _power(centre, limit, degrees) - wanted

    high = limit
    while short(high) < 0:
        high *= 2
    return error * float(brentq(short, 0.0, high, xtol=1e-12))


def _power(centre: float, limit: float, degrees: float) -> float:
    """P(|T| > limit) of a noncentral t with this centre, or of a normal variable.

    |Z + centre| > limit S is S < |Z + centre|/limit: the mean over Z of the distribution function
    of S, a root of a chi-squared over its degrees. SciPy's noncentral t is NaN for some of these.
    """
    from scipy.special import gammainc, ndtr

    if limit == 0:
        return 1.0
    if math.isinf(degrees):
        return float(ndtr(centre - limit) + ndtr(-centre - limit))
    # Pieces end at the integrand's kink, and around its steep parts for many degrees.
    near = min(1.0, 7 / math.sqrt(degrees))
    turns = limit * np.array([0.0, 1 - near, 1.0, 1 + near])
    breaks = np.r_[-_REACH, -centre - turns[::-1], turns - centre, _REACH]
    ends = np.clip(breaks, -_REACH, _REACH)
    node, weight = _legendre()
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    z = middle + half * node
    below = gammainc(degrees / 2, degrees / 2 * ((z + centre) / limit) ** 2)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return float((half * weight * density * below).sum())


@cache
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    return node, weight


def check_power(power: object) -> float:
    """A probability of telling an effect from 0.

    Raises:
        InputError: Not above 0 and below 1.

    Example:
        >>> check_power(0.8)
        0.8
    """
    return checks.number(power, "power", above=0, most=_MOST_POWER, example=0.8)


def _degrees(degrees: object) -> float:
    found = checks.number(
        degrees, "degrees_of_freedom", least=_LEAST_DEGREES, infinite=True, example=10
    )
    return found if found <= _NORMAL_DEGREES else math.inf


def _error(standard_error: object) -> float:
    return checks.number(standard_error, "standard_error", least=1e-100, most=1e100, example=0.1)
