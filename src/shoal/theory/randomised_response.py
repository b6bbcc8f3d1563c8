"""Randomised responses: what one costs, exactly, and the variance of debiased ones.

A unit with outcome y keeps it with probability k = 1 - lambda, else draws from a prior q whose
least probability is gamma: every outcome is then given with at least lambda gamma. The debiased
response omega = (response - lambda sum y q) / (1 - lambda) has mean y. Variances are averages over
the units of a group, in the outcome's unit squared.
Source: docs/theory/trials.md#what-it-costs and #debiased-responses.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Three units in the last place cover a logarithm or exponential and the conversions around it.
_SAFETY = 3 * Fraction(1, 2**52)
_TINY = Fraction(1, 2**60)
# Priors are whole numbers of 2^-32: rounding moves at most one such part a level.
_PART = 2.0**-32


def response_epsilon(keep: Fraction, least: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """The loss of one response: ln(1 + (k - delta)/(lambda gamma)), at least 0, rounded upwards.

    For any two outcomes the probabilities of a response differ by at most k, where the smaller one
    is at least lambda gamma: P - e^epsilon P' <= k + lambda gamma (1 - e^epsilon), which is at most
    delta for this epsilon (paper 003, Theorem 3.1; docs/theory/trials.md#what-it-costs; erratum
    12).
    """
    _check(keep, least, delta)
    if keep <= delta:
        return Fraction(0)
    if least == 0:
        raise InputError(
            "responses that may be told from another outcome's for certain",
            "raise the floor or replace more outcomes",
        )
    return _log1p_up((keep - delta) / least)


def ratio_epsilon(ratio: Fraction) -> Fraction:
    """The loss of a response whose probabilities differ by at most this ratio, rounded upwards.

    ln(ratio): the definition of pure differential privacy for a finite table
    (docs/theory/best-table.md#in-whole-numbers).

    Returns the privacy loss, never below the exact one.
    """
    if ratio < 1:
        raise InputError(f"a ratio of {float(ratio):.6g}", "give the larger over the smaller")
    return _log1p_up(ratio - 1)


def ratio_for(epsilon: Fraction) -> Fraction:
    """A rational ratio, hardly below e^epsilon, that costs at most epsilon by `ratio_epsilon`."""
    if epsilon <= 0:
        raise InputError(f"epsilon {float(epsilon):.6g}", "give a number above 0")
    more = _expm1_down(epsilon)
    while _log1p_up(more) > epsilon:
        more *= 1 - _SAFETY
    return 1 + more


def replacement_for(epsilon: Fraction, delta: Fraction, floor: Fraction, bits: int) -> int:
    """The least l of 2^bits with which replacing with probability l/2^bits costs at most epsilon.

    lambda >= (1 - delta)/(1 + gamma (e^epsilon - 1)), rounded upwards.
    """
    if epsilon < 0 or not 0 < floor <= 1 or not 0 <= delta < 1:
        raise InputError(
            f"epsilon {float(epsilon):.6g}, delta {float(delta):.6g}, floor {float(floor):.6g}",
            "give an epsilon from 0, a delta from 0 to below 1, and a floor above 0",
        )
    number: int = math.ceil(2**bits * (1 - delta) / (1 + floor * _expm1_down(epsilon)))
    while response_epsilon(
        1 - Fraction(number, 2**bits), Fraction(number, 2**bits) * floor, delta
    ) > max(epsilon, Fraction(0)):
        number += 1
    return number


def _check(keep: Fraction, least: Fraction, delta: Fraction) -> None:
    if not (0 <= keep <= 1 and 0 <= least <= 1 and 0 <= delta < 1):
        raise InputError(
            f"probabilities {float(keep):.6g}, {float(least):.6g} and {float(delta):.6g}",
            "give numbers from 0 to 1",
        )


def _log1p_up(value: Fraction) -> Fraction:
    """Not below ln(1 + value)."""
    if value > Fraction(10) ** 300:
        # ln(1 + a/b) <= ln 2 (bits of a - bits of b + 2) needs no floating-point number of a/b.
        bits = (1 + value).numerator.bit_length() - (1 + value).denominator.bit_length() + 1
        return Fraction(math.log(2)) * bits * (1 + _SAFETY)
    if value < _TINY:
        # ln(1 + x) <= x, which is exact where floating-point numbers end.
        return value
    return Fraction(math.log1p(float(value))) * (1 + _SAFETY)


def _expm1_down(value: Fraction) -> Fraction:
    """Not above e^value - 1; constant where floating-point numbers end."""
    capped = min(float(value), 700.0)
    return Fraction(math.expm1(capped)) * (1 - _SAFETY)


def given_prior(counts: Ints | Floats, prior: Floats, levels: Floats, lam: float) -> Floats:
    """Mean variance of omega over the units of each group, given its prior. Exact.

    lambda/(1 - lambda) mean (y_i - q1)^2 + lambda/(1 - lambda)^2 v, with q1 and v the mean and the
    variance of the prior (docs/theory/trials.md; paper 003, proof of Proposition A.9).
    """
    mean = prior @ levels
    apart = (levels - mean[..., None]) ** 2
    units = (counts * apart).sum(axis=-1) / counts.sum(axis=-1)
    own = (prior * apart).sum(axis=-1)
    return np.asarray(lam / (1 - lam) * units + lam / (1 - lam) ** 2 * own)


def with_any_prior(levels: Floats, lam: float, floor: float) -> float:
    """Largest variance of omega over all outcomes and all priors with a least share. Attained.

    A prior of mean m adds most with all it can move on the outer levels, for an outcome on the
    outer level further from m. With levels from 0 to U, a = lambda/(1 - lambda) and
    b = a/(1 - lambda) the variance for the outcome 0 is a m^2 + b (e - m^2), concave in m with its
    top at m = U/(2 lambda), as close as the floor lets m come; the outcome U is its mirror image.
    """
    width = float(levels[-1] - levels[0])
    one = _furthest(levels - levels[0], width, lam, floor)
    return max(one, _furthest(levels[-1] - levels, width, lam, floor))


def _furthest(above: Floats, width: float, lam: float, floor: float) -> float:
    """The largest variance of an outcome at 0."""
    free = max(0.0, 1 - len(above) * floor)
    least = floor * float(above.sum())
    mean = min(max(width / (2 * lam), least), least + free * width)
    second = floor * float((above**2).sum()) + width * (mean - least)
    return lam / (1 - lam) * mean**2 + lam / (1 - lam) ** 2 * (second - mean**2)


def prior_distance(sizes: Ints, levels: int, floor: float, sigma: float) -> Floats:
    """At least the expected total variation distance of a group's prior from its histogram.

    With b = sigma/n, g0 = gamma + (b/2) e^(-gamma/b) and
    g(p) = (b/2) (2 - e^(-(1 - p)/b) - e^(-(p - gamma)/b)) the least of

        1 - gamma
        (K - 1) g0 + b/2 + b sqrt(K/2)
        max over k = 1..K of (K - k) g0 + k g(min(1/k, (1 + gamma)/2))

    Replaces what paper 003 prints three times differently in A(x) (erratum 16; proof in
    docs/theory/trials.md). Valid for every histogram, for Laplace noise and for its lattice.
    """
    most = np.full(np.shape(sizes), 1 - floor)
    if not np.isfinite(sigma):
        return most
    b = sigma / np.asarray(sizes, dtype=np.float64)
    low = floor + b / 2 * np.exp(-floor / b)
    apart = (levels - 1) * low + b / 2 + b * (levels / 2) ** 0.5
    k = np.arange(1, levels + 1)
    share, wide = np.minimum(1 / k, (1 + floor) / 2), b[..., None]
    high = wide / 2 * (2 - np.exp(-(1 - share) / wide) - np.exp(-(share - floor) / wide))
    together = ((levels - k) * low[..., None] + k * high).max(axis=-1)
    return np.asarray(np.minimum(most, np.minimum(apart, together) + levels * _PART))


def at_most(
    sizes: Ints,
    levels: Floats,
    *,
    lam: float,
    floor: float,
    sigma: float,
    spread: Floats | None = None,
) -> Floats:
    """At least the mean variance of omega over the units of each group, on average over priors.

    (1/(1 - lambda)^2 - 1) s + lambda/(1 - lambda)^2 U^2 D, or `with_any_prior` if that is less: s
    the variance of the group's outcomes, U the width of the levels and D `prior_distance`. It takes
    the place of paper 003, Theorem 3.5 (erratum 16): there phi_a adds up s, A(x) is the rest.
    """
    width = float(levels[-1] - levels[0])
    around = np.full(np.shape(sizes), width**2 / 4) if spread is None else spread
    distance = prior_distance(sizes, len(levels), floor, sigma)
    priced = (1 / (1 - lam) ** 2 - 1) * around + lam / (1 - lam) ** 2 * width**2 * distance
    return np.asarray(np.minimum(priced, with_any_prior(levels, lam, floor)))
