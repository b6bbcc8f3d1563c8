"""Computes what a randomised response costs.

A unit keeps its outcome with probability k = 1 - lambda, and else draws one from a prior whose
least probability is gamma. So it gives every outcome with probability lambda gamma or more.
Source: docs/theory/experiments.md#what-it-costs.
"""

import math
from fractions import Fraction

from shoal.errors import InputError

# Three units in the last place cover a logarithm or exponential and the conversions around it.
_SAFETY = 3 * Fraction(1, 2**52)
# For a smaller x, the bound x of ln(1 + x) is close enough.
_TINY = Fraction(1, 2**60)


def response_epsilon(keep: Fraction, least: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """Returns the loss of one response, ln(1 + (keep - delta)/least) or 0, rounded upwards.

    `keep` is k and `least` is lambda gamma. For any two outcomes the probabilities P and P' of a
    response differ by at most k, and none is below lambda gamma. So P - e^epsilon P' is at most
    k + lambda gamma (1 - e^epsilon), which is at most delta for this epsilon (paper 003, Theorem
    3.1; erratum 12; docs/theory/experiments.md#what-it-costs).
    """
    _check(keep, least, delta)
    if keep <= delta:
        return Fraction(0)
    if least == 0:
        raise InputError(
            "a response may reveal for certain which outcome it is not",
            "raise the floor or replace more outcomes",
        )
    return _log1p_up((keep - delta) / least)


def ratio_epsilon(ratio: Fraction) -> Fraction:
    """Returns the loss of a response whose probabilities have at most this ratio, rounded upwards.

    It is ln(ratio), by the definition of pure differential privacy for a finite table
    (docs/theory/experiments.md#in-whole-numbers).
    """
    if ratio < 1:
        raise InputError(f"the ratio is {float(ratio):.6g}", "divide the larger by the smaller")
    return _log1p_up(ratio - 1)


def ratio_for(epsilon: Fraction) -> Fraction:
    """Returns a rational ratio near e^epsilon that costs at most epsilon by `ratio_epsilon`."""
    if epsilon <= 0:
        raise InputError(f"epsilon is {float(epsilon):.6g}", "give a number above 0")
    more = _expm1_down(epsilon)
    while _log1p_up(more) > epsilon:
        more *= 1 - _SAFETY
    return 1 + more


def replacement_for(epsilon: Fraction, delta: Fraction, floor: Fraction, bits: int) -> int:
    """Returns the least l such that replacing with probability l/2^bits costs at most epsilon.

    The probability is at least (1 - delta)/(1 + floor (e^epsilon - 1)), rounded upwards.
    """
    if epsilon < 0 or not 0 < floor <= 1 or not 0 <= delta < 1:
        raise InputError(
            f"epsilon is {float(epsilon):g}, delta {float(delta):g} and floor {float(floor):g}",
            "give an epsilon from 0, a delta from 0 to below 1, and a floor above 0",
        )

    def costs(number: int) -> Fraction:
        """Returns the loss if outcomes are replaced with probability number/2^bits."""
        replaced = Fraction(number, 2**bits)
        return response_epsilon(1 - replaced, replaced * floor, delta)

    number: int = math.ceil(2**bits * (1 - delta) / (1 + floor * _expm1_down(epsilon)))
    # The loss is rounded upwards, so that the next number may be needed.
    while costs(number) > epsilon:
        number += 1
    return number


def _check(keep: Fraction, least: Fraction, delta: Fraction) -> None:
    """Refuses numbers that are no probabilities."""
    if not (0 <= keep <= 1 and 0 <= least <= 1 and 0 <= delta < 1):
        raise InputError(
            f"the probabilities are {float(keep):.6g}, {float(least):.6g} and {float(delta):.6g}",
            "give numbers from 0 to 1",
        )


def _log1p_up(value: Fraction) -> Fraction:
    """Returns a number not below ln(1 + value)."""
    if value > Fraction(10) ** 300:
        # ln(a/b) <= ln 2 (bits of a - bits of b + 1) needs no floating-point number of a/b.
        ratio = 1 + value
        bits = ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1
        return Fraction(math.log(2)) * bits * (1 + _SAFETY)
    if value < _TINY:
        # ln(1 + x) <= x, and x is exact, while it might be too small for a floating-point number.
        return value
    return Fraction(math.log1p(float(value))) * (1 + _SAFETY)


def _expm1_down(value: Fraction) -> Fraction:
    """Returns a number not above e^value - 1; the same one for all values above 700."""
    capped = min(float(value), 700.0)
    return Fraction(math.expm1(capped)) * (1 - _SAFETY)
